package io.acktrail;

import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.common.config.AbstractConfig;

/** Audits producers by a wrapper, which knows the id of each ack with every version of Kafka. */
public final class Audit {
    private Audit() {
    }

    /**
     * The producer, audited. Its own settings, {@code acktrail.*} among them, say how.
     *
     * <p>If it cannot be audited, one ERROR line says why, and the producer itself is returned.
     */
    public static <K, V> Producer<K, V> wrap(Producer<K, V> producer) {
        try {
            return wrapped(producer, settingsOf(producer));
        } catch (Throwable error) {
            isOff("a producer", error);
            return producer;
        }
    }

    /** The producer, audited; for producers that are not a {@code KafkaProducer}. */
    public static <K, V> Producer<K, V> wrap(Producer<K, V> producer, Map<String, ?> configs) {
        try {
            return wrapped(producer, new LinkedHashMap<>(configs));
        } catch (Throwable error) {
            isOff("a producer", error);
            return producer;
        }
    }

    /** What went wrong with the audit in this process, and how often. */
    public static Map<String, Long> problems() {
        return Reporters.problems();
    }

    static void isOff(String what, Throwable error) {
        try {
            Reporters.problem("the audit of a client is off");
            Client.log.error("The audit of {} is off; the application goes on. Reason: {}",
                    what, String.valueOf(error), error);
        } catch (Throwable again) {
            // There is nothing left to do: the application must not notice.
        }
    }

    @SuppressWarnings("unchecked")
    private static <K, V> Producer<K, V> wrapped(Producer<K, V> producer, Map<String, ?> configs) {
        Session session = new Session(
                new AuditSettings(configs), configs, true, () -> ClientMetrics.of(producer.metrics()));
        Producer<K, V> made = (Producer<K, V>) Proxy.newProxyInstance(
                Producer.class.getClassLoader(),
                new Class<?>[] {Producer.class},
                new AuditedCalls(producer, session));
        session.reporter.add(session);
        return made;
    }

    private static Map<String, ?> settingsOf(Producer<?, ?> producer) {
        try {
            Field field = KafkaProducer.class.getDeclaredField("producerConfig");
            field.setAccessible(true);
            AbstractConfig config = (AbstractConfig) field.get(producer);
            Map<String, Object> found = new LinkedHashMap<>(config.originals());
            found.putIfAbsent("client.id", config.getString("client.id"));
            return found;
        } catch (Exception unknown) {
            throw new IllegalArgumentException("The settings of " + producer.getClass().getName()
                    + " cannot be read. Use Audit.wrap(producer, settings).", unknown);
        }
    }
}
