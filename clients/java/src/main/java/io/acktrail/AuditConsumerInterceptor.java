package io.acktrail;

import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerInterceptor;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.ClusterResource;
import org.apache.kafka.common.ClusterResourceListener;
import org.apache.kafka.common.TopicPartition;

/**
 * Audits a consumer by its settings alone: {@code
 * interceptor.classes=io.acktrail.AuditConsumerInterceptor}. It notes what {@code poll()} returned.
 *
 * <p>Nothing that goes wrong in here reaches the client.
 */
public class AuditConsumerInterceptor
        implements ConsumerInterceptor<Object, Object>, ClusterResourceListener {
    private volatile Membership membership;

    @Override
    public void configure(Map<String, ?> configs) {
        try {
            Membership made = open(configs);
            membership = made;
            made.reporter.add(made);
        } catch (Throwable error) {
            Audit.isOff("a consumer", error);
        }
    }

    /** The membership to note in. */
    Membership open(Map<String, ?> configs) {
        return new Membership(new AuditSettings(configs), configs, this);
    }

    @Override
    public ConsumerRecords<Object, Object> onConsume(ConsumerRecords<Object, Object> records) {
        Membership audit = membership;
        if (audit == null || !audit.on) {
            return records;
        }
        try {
            audit.given(records);
        } catch (Throwable error) {
            audit.strike(error);
        }
        return records;
    }

    @Override
    public void onCommit(Map<TopicPartition, OffsetAndMetadata> offsets) {
        // What was committed is known from the cluster.
    }

    @Override
    public void onUpdate(ClusterResource cluster) {
        Membership audit = membership;
        if (audit != null && cluster != null) {
            audit.clusterId = cluster.clusterId();
        }
    }

    @Override
    public void close() {
        Membership audit = membership;
        membership = null;
        if (audit == null) {
            return;
        }
        try {
            audit.reporter.lastReport(audit);
            audit.on = false;
        } catch (Throwable error) {
            audit.strike(error);
        }
    }
}
