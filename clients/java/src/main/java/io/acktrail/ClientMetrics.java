package io.acktrail;

import java.lang.management.ManagementFactory;
import java.util.LinkedHashMap;
import java.util.Map;
import javax.management.ObjectName;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.utils.Sanitizer;

/** A client's own metrics, read in its process: from the client, or by JMX. */
final class ClientMetrics {
    private static final String[] NAMES = {
        "record-send-total", "record-error-total", "record-retry-total", "request-latency-avg",
        "request-latency-max", "requests-in-flight", "record-queue-time-max"
    };

    private ClientMetrics() {
    }

    /** Of a producer, by JMX. */
    static Map<String, Double> ofProducer(String clientId) {
        Map<String, Double> found = new LinkedHashMap<>();
        for (String name : NAMES) {
            put(found, name, read("kafka.producer:type=producer-metrics", clientId, name));
        }
        return found;
    }

    /** Of a producer that is at hand. */
    static Map<String, Double> of(Map<MetricName, ? extends Metric> metrics) {
        Map<String, Double> found = new LinkedHashMap<>();
        metrics.forEach((metric, value) -> {
            if (metric.group().equals("producer-metrics")) {
                for (String name : NAMES) {
                    if (name.equals(metric.name())) {
                        put(found, name, value.metricValue());
                    }
                }
            }
        });
        return found;
    }

    /** How many rebalances a consumer has been through; NaN where that is not known. */
    static double rebalances(String clientId) {
        Object value = read(
                "kafka.consumer:type=consumer-coordinator-metrics", clientId, "rebalance-total");
        return value instanceof Number ? ((Number) value).doubleValue() : Double.NaN;
    }

    private static void put(Map<String, Double> into, String name, Object value) {
        if (value instanceof Number) {
            double number = ((Number) value).doubleValue();
            if (!Double.isNaN(number) && !Double.isInfinite(number)) {
                into.put(name, number);
            }
        }
    }

    private static Object read(String bean, String clientId, String attribute) {
        try {
            ObjectName name = new ObjectName(bean + ",client-id=" + Sanitizer.jmxSanitize(clientId));
            return ManagementFactory.getPlatformMBeanServer().getAttribute(name, attribute);
        } catch (Exception | LinkageError none) {
            return null;
        }
    }
}
