package io.acktrail;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The encoder, line by line, for tests in Python: each line of standard input is a command with
 * fields between tabs, and gives one line of output.
 */
public final class WireLines {
    private final List<Row> rows = new ArrayList<>();

    private WireLines() {
    }

    /** Reads commands until the end of standard input. */
    public static void main(String[] arguments) throws Exception {
        WireLines lines = new WireLines();
        BufferedReader in = new BufferedReader(
                new InputStreamReader(System.in, StandardCharsets.UTF_8));
        StringBuilder out = new StringBuilder();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.append(lines.answer(line.split("\t", -1))).append('\n');
        }
        System.out.print(out);
    }

    private String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "ids":
                return hex(RunLists.ofIds(ints(words[1]), ints(words[1]).length));
            case "range":
                return hex(RunLists.ofRange(Integer.parseInt(words[1]), Integer.parseInt(words[2])));
            case "offsets":
                int[] ids = ints(words[1]);
                return hex(RunLists.ofOffsets(ids, longs(words[2]), ids.length));
            case "forget":
                return hex(RunLists.withoutOffsets(bytes(words[1])));
            case "places":
                IdPlaces places = new IdPlaces();
                int[] seqs = ints(words[1]);
                long[] at = longs(words[2]);
                for (int i = 0; i < seqs.length; i++) {
                    places.add(seqs[i], at[i]);
                }
                StringBuilder layers = new StringBuilder();
                places.layers().forEach(layer -> layers.append(hex(layer.runList())).append(' '));
                return layers.toString().trim();
            case "error":
                String name = SendErrors.name(words[1], words[2]);
                return name + "\t" + SendErrors.tier(name);
            case "session":
                long[] id = IdHeader.newSession(Long.parseLong(words[1]));
                return IdHeader.hex(id[0], id[1]);
            case "row":
                rows.add(row(words));
                return "";
            case "message":
                String text = new String(
                        Row.message(Collections.emptyList(), rows), StandardCharsets.US_ASCII);
                rows.clear();
                return text;
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    /** tier, topic, then {@code name=value} for each field that is set. */
    private static Row row(String[] words) throws Exception {
        Row row = new Row(words[1], unescaped(words[2]));
        for (int at = 3; at < words.length; at++) {
            int cut = words[at].indexOf('=');
            set(row, words[at].substring(0, cut), words[at].substring(cut + 1));
        }
        return row;
    }

    private static void set(Row row, String name, String text) throws Exception {
        Field field = Row.class.getDeclaredField(name);
        Class<?> type = field.getType();
        if (type == String.class) {
            field.set(row, unescaped(text));
        } else if (type == int.class || type == Integer.class) {
            field.set(row, Integer.valueOf(text));
        } else if (type == long.class || type == Long.class) {
            field.set(row, Long.valueOf(text));
        } else if (type == boolean.class) {
            field.set(row, Boolean.valueOf(text));
        } else if (type == byte[].class) {
            field.set(row, bytes(text));
        } else if (type == long[].class) {
            field.set(row, longs(text));
        } else {
            Map<String, Object> map = new LinkedHashMap<>();
            for (String pair : text.split("&")) {
                String[] both = pair.split(":", 2);
                map.put(unescaped(both[0]), name.equals("metrics") ? (Object) Double.valueOf(both[1])
                        : name.equals("outcomes") || name.equals("dropped")
                                ? (Object) Long.valueOf(both[1]) : unescaped(both[1]));
            }
            field.set(row, map);
        }
    }

    /** Hex of UTF-16: any text fits on a line. */
    private static String unescaped(String hex) {
        byte[] units = bytes(hex);
        return new String(units, StandardCharsets.UTF_16BE);
    }

    private static int[] ints(String text) {
        long[] found = longs(text);
        int[] made = new int[found.length];
        for (int i = 0; i < made.length; i++) {
            made[i] = (int) found[i];
        }
        return made;
    }

    private static long[] longs(String text) {
        if (text.isEmpty()) {
            return new long[0];
        }
        String[] words = text.split(" ");
        long[] found = new long[words.length];
        for (int i = 0; i < found.length; i++) {
            found[i] = Long.parseLong(words[i]);
        }
        return found;
    }

    private static byte[] bytes(String hex) {
        byte[] found = new byte[hex.length() / 2];
        for (int i = 0; i < found.length; i++) {
            found[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
        }
        return found;
    }

    private static String hex(byte[] bytes) {
        StringBuilder out = new StringBuilder();
        for (byte one : bytes) {
            out.append(String.format("%02x", one));
        }
        return out.toString();
    }
}
