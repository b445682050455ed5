package io.acktrail;

import java.lang.ref.WeakReference;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.common.TopicPartition;

/** One consumer under audit: what it was given, and what it reports. */
final class Membership extends Client {
    private final String group;
    private final String clientId;
    private final WeakReference<Object> owner;
    private final ReadOffsets read;
    private final Map<String, Boolean> audited = new HashMap<>();
    private final Map<String, Map<String, Long>> dropped = new TreeMap<>();

    Membership(AuditSettings audit, Map<String, ?> configs, Object owner) {
        super(audit, "", ClientSettings.ofConsumer(configs, audit));
        this.group = String.valueOf(settings.getOrDefault("group.id", ""));
        this.clientId = settings.get("client_id");
        this.owner = new WeakReference<>(owner);
        this.read = new ReadOffsets(group, () -> ClientMetrics.rebalances(clientId));
    }

    @Override
    String key() {
        return group + "/" + reporterId;
    }

    /** These were returned by {@code poll()}. */
    void given(ConsumerRecords<?, ?> records) {
        if (records == null || records.isEmpty()) {
            return;
        }
        long nowMs = System.currentTimeMillis();
        boolean many;
        synchronized (this) {
            for (TopicPartition place : records.partitions()) {
                if (audited.computeIfAbsent(place.topic(), t -> audit.audits(t, clientId))) {
                    List<? extends ConsumerRecord<?, ?>> some = records.records(place);
                    read.read(place, some, nowMs);
                }
            }
            many = read.waiting() > 1_000_000;
        }
        if (many) {
            reporter.wake();
        }
    }

    @Override
    synchronized void take(long nowMs, Ending ending, List<Row> beats, List<Row> rows) {
        if (owner.get() == null) {
            on = false;  // the consumer was let go without being closed
        }
        read.take(nowMs, rows);
        for (Row row : rows) {
            row.clusterId = clusterId;
        }
        for (String topic : read.topics()) {
            Row beat = new Row("heartbeat", topic);
            beat.group = group;
            beat.settings = described();
            beat.closed = ending != Ending.NONE;
            beat.clusterId = clusterId;
            beat.dropped = new TreeMap<>(dropped.getOrDefault(topic, new TreeMap<>()));
            beats.add(beat);
        }
    }

    @Override
    synchronized void dropped(Row row) {
        dropped.computeIfAbsent(row.topic, t -> new TreeMap<>())
                .merge(row.tier, row.records, Long::sum);
    }

    @Override
    synchronized int waiting() {
        return read.waiting();
    }

    @Override
    boolean hasOpen() {
        return false;
    }

    @Override
    void abandon() {
        // What was not noted is missing from the ranges, which claim nothing about it.
    }
}
