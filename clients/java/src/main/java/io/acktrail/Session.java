package io.acktrail;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.header.Header;

/** One producer under audit: what the interceptor or the wrapper notes, and the reporter takes. */
class Session extends Client {
    /** The header, and what a batch adds to one record. */
    private static final int SPARE = 200;

    final long high;
    final long low;
    final boolean exact;
    private final boolean unacked;
    private final int limit;
    private final FreshTopics fresh = new FreshTopics();
    private final ConcurrentHashMap<String, SentIds> topics = new ConcurrentHashMap<>();
    private final Set<String> excluded = ConcurrentHashMap.newKeySet();
    private final Supplier<Map<String, Double>> metrics;
    private Map<String, Long> began;
    private int part;

    /**
     * @param exact whether callbacks say which record they are about
     * @param metrics the client's own numbers
     */
    Session(
            AuditSettings audit,
            Map<String, ?> configs,
            boolean exact,
            Supplier<Map<String, Double>> metrics) {
        this(audit, configs, exact, metrics, IdHeader.newSession(System.currentTimeMillis()));
    }

    private Session(
            AuditSettings audit,
            Map<String, ?> configs,
            boolean exact,
            Supplier<Map<String, Double>> metrics,
            long[] id) {
        super(audit, IdHeader.hex(id[0], id[1]), ClientSettings.ofProducer(configs, audit));
        this.high = id[0];
        this.low = id[1];
        this.exact = exact;
        this.metrics = metrics;
        this.unacked = "0".equals(settings.get("acks"));
        this.limit = ClientSettings.number(configs, "max.request.size", 1 << 20);
        if (!exact && !unacked) {
            settings.put("audit_mode", "acked_offsets");
        }
    }

    // -- called by the application's and the client's threads --------------------------------------

    /** A copy of the record with an id, or the record itself where it is not audited. */
    <K, V> ProducerRecord<K, V> audited(ProducerRecord<K, V> record) {
        if (!on || record == null) {
            return record;
        }
        SentIds ids = topics.get(record.topic());
        if (ids == null) {
            ids = topic(record.topic());
            if (ids == null) {
                return record;
            }
        }
        if (record.headers().lastHeader(IdHeader.NAME) instanceof IdHeader) {
            return record;  // by a wrapper around this producer
        }
        if (isNearLimit(record)) {
            ids.sentUnaudited();
            return record;
        }
        long nowMs = System.currentTimeMillis();
        long seq = ids.next(nowMs);
        try {
            ProducerRecord<K, V> made = new ProducerRecord<>(
                    exact ? record.topic() : fresh.fresh(ids, seq),
                    record.partition(),
                    record.timestamp(),
                    record.key(),
                    record.value(),
                    IdHeader.kept(record.headers()));
            made.headers().add(new IdHeader(this, ids, seq, nowMs));
            return made;
        } catch (Throwable error) {
            ids.lose("acked", 1);
            throw error;
        }
    }

    /** The topic's ids; null where it is not audited. */
    private SentIds topic(String name) {
        if (excluded.contains(name)) {
            return null;
        }
        if (!audit.audits(name, settings.get("client_id"))) {
            if (excluded.size() < 10_000) {
                excluded.add(name);
            }
            return null;
        }
        SentIds made = new SentIds(name, unacked, System.currentTimeMillis());
        SentIds known = topics.putIfAbsent(name, made);
        return known == null ? made : known;
    }

    /** Whether 43 bytes more could make the record too large, as far as sizes are known here. */
    private boolean isNearLimit(ProducerRecord<?, ?> record) {
        long size = size(record.value()) + size(record.key());
        if (size < limit >> 1) {
            return false;
        }
        for (Header header : record.headers()) {
            size += header.key().length() + (header.value() == null ? 0 : header.value().length);
        }
        return size <= limit && size + SPARE > limit;  // above it, it fails with or without an id
    }

    /** Bytes of what is serialized in the usual way; 0 where that is not known. */
    private long size(Object content) {
        if (content instanceof byte[]) {
            return ((byte[]) content).length;
        }
        if (!(content instanceof String)) {
            return 0;
        }
        String text = (String) content;
        long size = text.length();
        if (3 * size > limit >> 1) {
            for (int at = 0; at < text.length(); at++) {
                char c = text.charAt(at);
                size += c < 0x80 ? 0 : c < 0x800 || Character.isSurrogate(c) ? 1 : 2;
            }
        }
        return size;
    }

    /** What became of the record with this header. */
    void outcome(IdHeader header, RecordMetadata metadata, Throwable error) {
        SentIds ids = header.ids;
        if (metadata != null && metadata.topic() != null && !ids.topic.equals(metadata.topic())) {
            ids.topicChanged();
            return;
        }
        int partition = metadata == null ? -1 : metadata.partition();
        boolean many;
        if (error != null) {
            many = ids.told(header.seq, partition, SendErrors.name(error));
        } else {
            long offset = metadata != null && metadata.hasOffset() ? metadata.offset() : -1;
            many = ids.acked(header.seq, partition, offset);
        }
        if (many) {
            reporter.wake();
        }
    }

    /** What became of a record whose header is not the one that was added: a copy, or none. */
    void outcomeOf(byte[] value, RecordMetadata metadata, Throwable error) {
        SentIds ids = metadata == null ? null : topics.get(metadata.topic());
        if (ids == null) {
            return;
        }
        boolean own = IdHeader.isOurs(value)
                && IdHeader.read(value, 1) == high && IdHeader.read(value, 9) == low;
        if (own) {
            outcome(new IdHeader(this, ids, IdHeader.read(value, 17), 0), metadata, error);
        } else {
            ids.outcomeWithoutId();
        }
    }

    /** What became of some record, before 4.1. */
    void outcomeOfSome(RecordMetadata metadata, Throwable error) {
        SentIds ids = metadata == null ? null : topics.get(metadata.topic());
        if (ids == null) {
            return;
        }
        if (error == null) {
            if (unacked) {
                ids.settledSome();
            } else {
                ids.ackedSome(metadata.partition(), metadata.hasOffset() ? metadata.offset() : -1);
            }
            return;
        }
        FreshTopics.Entry entry = fresh.find(metadata.topic());
        if (entry == null) {
            ids.outcomeWithoutId();
        } else if (entry.ids.told(entry.seq, metadata.partition(), SendErrors.name(error))) {
            reporter.wake();
        }
    }

    /** Ids from here on are part of a transaction. */
    synchronized void transactionBegan() {
        began = new HashMap<>();
        topics.forEach((name, ids) -> began.put(name, ids.handedOver()));
    }

    /** The ids since it began are committed or aborted. */
    synchronized void transactionEnded(boolean committed) {
        Map<String, Long> firsts = began;
        began = null;
        if (firsts == null) {
            return;
        }
        topics.forEach((name, ids) -> {
            long first = firsts.getOrDefault(name, 0L);
            long end = ids.handedOver();
            if (end > first) {
                ids.transactionEnded(committed, first, end - 1);
            }
        });
    }

    // -- called by the reporter --------------------------------------------------------------------

    @Override
    void take(long nowMs, Ending ending, List<Row> beats, List<Row> rows) {
        fresh.reap();
        Map<String, Double> numbers = numbers();
        for (SentIds ids : topics.values()) {
            List<Row> here = new ArrayList<>(ids.take(nowMs));
            if (ending != Ending.NONE && !exact && unacked) {
                here.addAll(ids.restUnacked());
            } else if (ending == Ending.PROCESS && exact) {
                here.addAll(ids.leftOpen("_DESTROY"));
            }
            for (Row row : here) {
                row.part = ++part;
                row.session = key();
                row.clusterId = clusterId;
            }
            rows.addAll(here);
            Row beat = new Row("heartbeat", ids.topic);
            beat.session = key();
            beat.settings = described();
            beat.metrics = numbers;
            beat.closed = ending != Ending.NONE;
            beat.clusterId = clusterId;
            ids.describe(beat);
            beats.add(beat);
        }
    }

    private Map<String, Double> numbers() {
        Map<String, Double> found = new LinkedHashMap<>();
        double sent = 0;
        double failed = 0;
        for (SentIds ids : topics.values()) {
            sent += ids.handedOver();
            failed += ids.errors();
        }
        found.put("record-send-total", sent);
        found.put("record-error-total", failed);
        try {
            found.putAll(metrics.get());
        } catch (Throwable error) {
            log.debug("the client's metrics could not be read", error);
        }
        return found;
    }

    @Override
    void dropped(Row row) {
        SentIds ids = topics.get(row.topic);
        if (ids != null) {
            ids.lose(row.tier, row.records);
        }
    }

    @Override
    int waiting() {
        int found = 0;
        for (SentIds ids : topics.values()) {
            found += ids.waiting();
        }
        return found;
    }

    /** Whether ids are under way. */
    @Override
    boolean hasOpen() {
        for (SentIds ids : topics.values()) {
            if (ids.open() > 0) {
                return true;
            }
        }
        return false;
    }

    @Override
    void abandon() {
        topics.values().forEach(SentIds::abandon);
    }
}
