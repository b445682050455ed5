package io.acktrail;

import java.util.Map;
import org.apache.kafka.common.ClusterResource;
import org.apache.kafka.common.ClusterResourceListener;
import org.apache.kafka.common.serialization.Serializer;

/** The serializer of the reporter's producer: bytes as they are. It hears the cluster's id, too. */
final class ReportBytes implements Serializer<byte[]>, ClusterResourceListener {
    private final Reporter reporter;

    ReportBytes(Reporter reporter) {
        this.reporter = reporter;
    }

    @Override
    public void configure(Map<String, ?> configs, boolean isKey) {
        // Nothing to set.
    }

    @Override
    public byte[] serialize(String topic, byte[] data) {
        return data;
    }

    @Override
    public void onUpdate(ClusterResource cluster) {
        reporter.clusterIs(cluster.clusterId());
    }

    @Override
    public void close() {
        // Nothing to close.
    }
}
