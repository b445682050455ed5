package io.acktrail;

import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Collection;
import java.util.Collections;
import java.util.Map;

/** One row of a report, and messages made of rows; fields in the order of docs/wire.md. */
final class Row {
    String reporter = "";
    final String tier;
    final String topic;
    long number;
    long reportedMs;
    String session = "";
    int partition = -1;
    String group = "";
    long block = -1;
    int part;
    Integer leaderEpoch;
    Long firstOffset;
    Long lastOffset;
    long records;
    byte[] ids;
    Long assignment;
    Map<String, String> errors = Collections.emptyMap();
    Map<String, String> settings = Collections.emptyMap();
    long[] minutes = new long[0];
    Long beganMs;
    Long endedMs;
    boolean closed;
    String clusterId;
    Map<String, Long> outcomes = Collections.emptyMap();
    Map<String, Long> dropped = Collections.emptyMap();
    Map<String, Double> metrics = Collections.emptyMap();

    Row(String tier, String topic) {
        this.tier = tier;
        this.topic = topic;
    }

    Row from(SpanMs span) {
        beganMs = span.began;
        endedMs = span.ended;
        return this;
    }

    /** About how many bytes it takes in a message and in memory. */
    int size() {
        return 400 + (ids == null ? 0 : ids.length * 4 / 3);
    }

    /** An {@code acked} row that takes less memory: the same ids, their offsets forgotten. */
    Row withoutOffsets() {
        Row made = new Row("acked_no_offset", topic);
        made.reporter = reporter;
        made.number = number;
        made.reportedMs = reportedMs;
        made.session = session;
        made.partition = partition;
        made.block = block;
        made.part = part;
        made.records = records;
        made.ids = RunLists.withoutOffsets(ids);
        made.beganMs = beganMs;
        made.endedMs = endedMs;
        made.clusterId = clusterId;
        return made;
    }

    /** One message of the audit topic. */
    static byte[] message(Collection<Row> first, Collection<Row> then) {
        StringBuilder out = new StringBuilder(1024).append("{\"v\":1,\"reports\":[");
        for (Row row : first) {
            row.write(out);
        }
        for (Row row : then) {
            row.write(out);
        }
        if (out.charAt(out.length() - 1) == ',') {
            out.setLength(out.length() - 1);
        }
        return out.append("]}").toString().getBytes(StandardCharsets.US_ASCII);
    }

    private void write(StringBuilder out) {
        out.append('{');
        text(out, "reporter", reporter);
        text(out, "tier", tier);
        text(out, "topic", topic);
        number(out, "number", number);
        number(out, "reported_ms", reportedMs);
        if (!session.isEmpty()) {
            text(out, "session", session);
        }
        if (partition != -1) {
            number(out, "partition", partition);
        }
        if (!group.isEmpty()) {
            text(out, "group", group);
        }
        if (block != -1) {
            number(out, "block", block);
        }
        if (part != 0) {
            number(out, "part", part);
        }
        known(out, "leader_epoch", leaderEpoch);
        known(out, "first_offset", firstOffset);
        known(out, "last_offset", lastOffset);
        if (records != 0) {
            number(out, "records", records);
        }
        if (ids != null) {
            text(out, "ids", Base64.getEncoder().encodeToString(ids));
        }
        known(out, "assignment", assignment);
        map(out, "errors", errors);
        map(out, "settings", settings);
        if (minutes.length > 0) {
            out.append("\"minutes\":[");
            for (long one : minutes) {
                out.append(one).append(',');
            }
            close(out, ']');
        }
        known(out, "began_ms", beganMs);
        known(out, "ended_ms", endedMs);
        if (closed) {
            out.append("\"closed\":true,");
        }
        if (clusterId != null) {
            text(out, "cluster_id", clusterId);
        }
        map(out, "outcomes", outcomes);
        map(out, "dropped", dropped);
        map(out, "metrics", metrics);
        close(out, '}');
    }

    private static void close(StringBuilder out, char bracket) {
        out.setCharAt(out.length() - 1, bracket);
        out.append(',');
    }

    private static void number(StringBuilder out, String name, long value) {
        out.append('"').append(name).append("\":").append(value).append(',');
    }

    private static void known(StringBuilder out, String name, Number value) {
        if (value != null) {
            number(out, name, value.longValue());
        }
    }

    private static void text(StringBuilder out, String name, String value) {
        out.append('"').append(name).append("\":");
        quote(out, value);
        out.append(',');
    }

    private static void map(StringBuilder out, String name, Map<String, ?> values) {
        if (values.isEmpty()) {
            return;
        }
        out.append('"').append(name).append("\":{");
        for (Map.Entry<String, ?> entry : values.entrySet()) {
            quote(out, entry.getKey());
            out.append(':');
            if (entry.getValue() instanceof String) {
                quote(out, (String) entry.getValue());
            } else {
                out.append(entry.getValue());
            }
            out.append(',');
        }
        close(out, '}');
    }

    private static void quote(StringBuilder out, String value) {
        out.append('"');
        for (int at = 0; at < value.length(); at++) {
            char c = value.charAt(at);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c == '\n') {
                out.append("\\n");
            } else if (c == '\r') {
                out.append("\\r");
            } else if (c == '\t') {
                out.append("\\t");
            } else if (c == '\b') {
                out.append("\\b");
            } else if (c == '\f') {
                out.append("\\f");
            } else if (c < ' ' || c > '~') {
                out.append(String.format("\\u%04x", (int) (broken(value, at) ? '\ufffd' : c)));
            } else {
                out.append(c);
            }
        }
        out.append('"');
    }

    /** Whether half of a surrogate pair is at {@code at}: no table takes it. */
    private static boolean broken(String value, int at) {
        char c = value.charAt(at);
        if (Character.isHighSurrogate(c)) {
            return at + 1 == value.length() || !Character.isLowSurrogate(value.charAt(at + 1));
        }
        return Character.isLowSurrogate(c)
                && (at == 0 || !Character.isHighSurrogate(value.charAt(at - 1)));
    }

    /** From the report before to this one. */
    static final class SpanMs {
        final long began;
        final long ended;

        SpanMs(long began, long ended) {
            this.began = began;
            this.ended = ended;
        }
    }
}
