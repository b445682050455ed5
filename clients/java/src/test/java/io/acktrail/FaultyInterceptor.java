package io.acktrail;

import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;

/** An interceptor of ours with a fault, an {@code Error}, in the place that its settings name. */
public final class FaultyInterceptor extends AuditProducerInterceptor {
    @Override
    Session open(Map<String, ?> configs) {
        String where = String.valueOf(configs.get("test.fault"));
        fail(where, "configure");
        return new FaultySession(configs, where, super.open(configs).exact);
    }

    private static void fail(String where, String here) {
        if (where.equals(here)) {
            throw new StackOverflowError("made by a test in " + here);
        }
    }

    private static final class FaultySession extends Session {
        private final String where;

        FaultySession(Map<String, ?> configs, String where, boolean exact) {
            super(new AuditSettings(configs), configs, exact, Collections::emptyMap);
            this.where = where;
        }

        @Override
        <K, V> ProducerRecord<K, V> audited(ProducerRecord<K, V> record) {
            fail(where, "send");
            return super.audited(record);
        }

        @Override
        void outcome(IdHeader header, RecordMetadata metadata, Throwable error) {
            fail(where, "ack");
            super.outcome(header, metadata, error);
        }

        @Override
        void outcomeOfSome(RecordMetadata metadata, Throwable error) {
            fail(where, "ack");
            super.outcomeOfSome(metadata, error);
        }

        @Override
        void take(long nowMs, Ending ending, List<Row> beats, List<Row> rows) {
            fail(where, "take");
            super.take(nowMs, ending, beats, rows);
        }
    }
}
