package io.acktrail;

import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;

/** The settings {@code acktrail.*} of a client: where its reports go, and what they may cost. */
final class AuditSettings {
    static final String PREFIX = "acktrail.";
    private static final String PRODUCER = PREFIX + "producer.";
    private static final Set<String> KNOWN = new HashSet<>(Arrays.asList(
            "topic", "topics.exclude", "interval.ms", "memory.bytes", "close.ms", "host"));
    private static final Pattern INTERNAL = Pattern.compile(
            "__.*|connect-(offsets|configs|status)|mm2-.+\\.internal|.+\\.checkpoints\\.internal");
    private static final Pattern STREAMS = Pattern.compile(
            ".+-(changelog|repartition)|.+-KTABLE-FK-JOIN-.+-topic");
    private static final String STREAMS_CLIENT = "-StreamThread-";
    private static final List<String> INHERITED = Arrays.asList(
            "security.", "sasl.", "ssl.", "bootstrap.servers", "client.dns.lookup");

    final String topic;
    final long intervalMs;
    final long memoryBytes;
    final long closeMs;
    final String host;
    private final Pattern exclude;
    /** Whether the audit topic is on a cluster of its own: then nothing is inherited. */
    final boolean elsewhere;
    /** What the reporter's own producer is given. */
    final Map<String, Object> access = new HashMap<>();

    AuditSettings(Map<String, ?> configs) {
        topic = text(configs, "topic", "acktrail-reports");
        intervalMs = number(configs, "interval.ms", 10_000, 100);
        memoryBytes = number(configs, "memory.bytes", 16 << 20, 1 << 16);
        closeMs = number(configs, "close.ms", 1_000, 0);
        host = text(configs, "host", "");
        exclude = pattern(text(configs, "topics.exclude", ""));
        Map<String, Object> own = new HashMap<>();
        for (Map.Entry<String, ?> entry : configs.entrySet()) {
            String name = entry.getKey();
            if (name.startsWith(PRODUCER)) {
                own.put(name.substring(PRODUCER.length()), configs.get(name));
            } else if (name.startsWith(PREFIX) && !KNOWN.contains(name.substring(PREFIX.length()))) {
                Client.log.warn("There is no setting {}. There are: {}, producer.*",
                        name, String.join(", ", KNOWN));
            }
        }
        elsewhere = own.containsKey("bootstrap.servers");
        if (!elsewhere) {
            for (Map.Entry<String, ?> entry : configs.entrySet()) {
                boolean taken = INHERITED.stream().anyMatch(one -> one.endsWith(".")
                        ? entry.getKey().startsWith(one) : entry.getKey().equals(one));
                if (taken && entry.getValue() != null) {
                    access.put(entry.getKey(), entry.getValue());
                }
            }
        }
        access.putAll(own);
    }

    /** Whether messages of {@code name} are audited; internal topics are not. */
    boolean audits(String name, String clientId) {
        if (name.equals(topic) || INTERNAL.matcher(name).matches()) {
            return false;
        }
        if (clientId != null && clientId.contains(STREAMS_CLIENT) && STREAMS.matcher(name).matches()) {
            return false;
        }
        return exclude == null || !exclude.matcher(name).matches();
    }

    private static Pattern pattern(String text) {
        if (text.isEmpty()) {
            return null;
        }
        try {
            return Pattern.compile(text);
        } catch (PatternSyntaxException error) {
            throw new IllegalArgumentException(
                    PREFIX + "topics.exclude=" + text + " is not a regular expression: " + error.getMessage());
        }
    }

    private static String text(Map<String, ?> configs, String name, String otherwise) {
        Object given = configs.get(PREFIX + name);
        String text = given == null ? "" : given.toString().trim();
        return text.isEmpty() ? otherwise : text;
    }

    private static long number(Map<String, ?> configs, String name, long otherwise, long least) {
        String text = text(configs, name, Long.toString(otherwise));
        try {
            return Math.max(least, Long.parseLong(text));
        } catch (NumberFormatException error) {
            throw new IllegalArgumentException(PREFIX + name + "=" + text + " is not a whole number");
        }
    }
}
