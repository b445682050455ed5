package io.acktrail;

import java.util.Map;
import org.apache.kafka.clients.producer.ProducerInterceptor;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.ClusterResource;
import org.apache.kafka.common.ClusterResourceListener;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;

/**
 * Audits a producer by its settings alone: {@code
 * interceptor.classes=io.acktrail.AuditProducerInterceptor}. Where there are several interceptors,
 * it should be the last.
 *
 * <p>Nothing that goes wrong in here reaches the client: an {@code Error} thrown from a callback
 * would end its I/O thread.
 */
public class AuditProducerInterceptor
        implements ProducerInterceptor<Object, Object>, ClusterResourceListener {
    /** Whether callbacks have the record's headers (clients 4.1 and later). */
    private static final boolean EXACT = hasHeadersAtAck();

    private volatile Session session;

    @Override
    public void configure(Map<String, ?> configs) {
        try {
            Session made = open(configs);
            session = made;
            made.reporter.add(made);
        } catch (Throwable error) {
            Audit.isOff("a producer", error);
        }
    }

    /** The session to note in. */
    Session open(Map<String, ?> configs) {
        String client = String.valueOf(configs.get("client.id"));
        return new Session(new AuditSettings(configs), configs, EXACT,
                () -> ClientMetrics.ofProducer(client));
    }

    @Override
    public ProducerRecord<Object, Object> onSend(ProducerRecord<Object, Object> record) {
        Session audit = session;
        if (audit == null) {
            return record;
        }
        try {
            return audit.audited(record);
        } catch (Throwable error) {
            audit.strike(error);
            return record;
        }
    }

    /** Called by clients before 4.1. */
    @Override
    public void onAcknowledgement(RecordMetadata metadata, Exception error) {
        Session audit = session;
        if (audit == null || !audit.on) {
            return;
        }
        try {
            audit.outcomeOfSome(metadata, error);
        } catch (Throwable broken) {
            audit.strike(broken);
        }
    }

    /** Called by clients from 4.1 on; a plain overload for older ones. */
    public void onAcknowledgement(RecordMetadata metadata, Exception error, Headers headers) {
        Session audit = session;
        if (audit == null || !audit.on) {
            return;
        }
        try {
            Header last = headers == null ? null : headers.lastHeader(IdHeader.NAME);
            if (last instanceof IdHeader && ((IdHeader) last).session == audit) {
                audit.outcome((IdHeader) last, metadata, error);
            } else if (!(last instanceof IdHeader)) {
                audit.outcomeOf(last == null ? null : last.value(), metadata, error);
            }
        } catch (Throwable broken) {
            audit.strike(broken);
        }
    }

    @Override
    public void onUpdate(ClusterResource cluster) {
        Session audit = session;
        if (audit != null && cluster != null) {
            audit.clusterId = cluster.clusterId();
        }
    }

    @Override
    public void close() {
        Session audit = session;
        session = null;
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

    private static boolean hasHeadersAtAck() {
        try {
            ProducerInterceptor.class.getMethod(
                    "onAcknowledgement", RecordMetadata.class, Exception.class, Headers.class);
            return true;
        } catch (NoSuchMethodException older) {
            return false;
        }
    }
}
