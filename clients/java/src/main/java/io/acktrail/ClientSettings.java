package io.acktrail;

import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.utils.AppInfoParser;

/** What reports say of a client: what was set, and the defaults of its version. No secrets. */
final class ClientSettings {
    private static final String IN_FLIGHT = "max.in.flight.requests.per.connection";
    private static final String[] PRODUCER = {
        "acks", "retries", "delivery.timeout.ms", "request.timeout.ms", "linger.ms", "batch.size",
        "retry.backoff.ms", "max.block.ms", "max.request.size", "enable.idempotence", IN_FLIGHT,
        "transactional.id", "compression.type", "partitioner.class"
    };
    private static final String[] CONSUMER = {
        "group.id", "group.protocol", "group.instance.id", "auto.offset.reset",
        "enable.auto.commit", "isolation.level", "partition.assignment.strategy"
    };

    private ClientSettings() {
    }

    static Map<String, String> ofProducer(Map<String, ?> configs, AuditSettings audit) {
        Map<String, String> found =
                reported(configs, PRODUCER, ProducerConfig.configDef().defaultValues(), audit);
        if ("-1".equals(found.get("acks"))) {
            found.put("acks", "all");
        }
        if (found.containsKey("transactional.id")) {
            found.put("enable.idempotence", "true");
            found.put("acks", configs.get("acks") == null ? "all" : found.get("acks"));
        } else if (configs.get("enable.idempotence") == null && (!"all".equals(found.get("acks"))
                || "0".equals(found.get("retries")) || number(found, IN_FLIGHT, 5) > 5)) {
            found.put("enable.idempotence", "false");  // such settings switch it off
        }
        return found;
    }

    static Map<String, String> ofConsumer(Map<String, ?> configs, AuditSettings audit) {
        return reported(configs, CONSUMER, ConsumerConfig.configDef().defaultValues(), audit);
    }

    static int number(Map<String, ?> configs, String name, int otherwise) {
        try {
            Object given = configs.get(name);
            return given == null ? otherwise : Integer.parseInt(given.toString().trim());
        } catch (NumberFormatException error) {
            return otherwise;
        }
    }

    private static Map<String, String> reported(
            Map<String, ?> configs, String[] names, Map<String, Object> defaults,
            AuditSettings audit) {
        Map<String, String> found = new LinkedHashMap<>();
        Object client = configs.get("client.id");
        found.put("client_id", client == null ? "" : client.toString());
        found.put("host", audit.host.isEmpty() ? host() : audit.host);
        for (String name : names) {
            Object value = configs.get(name);
            value = value == null ? defaults.get(name) : value;
            if (value != null && !value.toString().isEmpty()) {
                found.put(name, text(value));
            }
        }
        found.put("client", "kafka-clients " + AppInfoParser.getVersion());
        return found;
    }

    private static String text(Object value) {
        if (value instanceof Class) {
            return ((Class<?>) value).getName();
        }
        if (value instanceof Collection) {
            StringBuilder out = new StringBuilder();
            for (Object one : (Collection<?>) value) {
                out.append(out.length() == 0 ? "" : ",").append(text(one));
            }
            return out.toString();
        }
        return value.toString();
    }

    /** This machine's name, without asking a name server where the system knows it. */
    private static String host() {
        try {
            String name = new String(Files.readAllBytes(Paths.get("/proc/sys/kernel/hostname")));
            return name.trim();
        } catch (Exception notLinux) {
            for (String variable : new String[] {"HOSTNAME", "COMPUTERNAME"}) {
                String name = System.getenv(variable);
                if (name != null && !name.isEmpty()) {
                    return name;
                }
            }
        }
        try {
            return InetAddress.getLocalHost().getHostName();
        } catch (Exception unknown) {
            return "";
        }
    }
}
