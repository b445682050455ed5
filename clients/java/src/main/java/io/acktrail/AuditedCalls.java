package io.acktrail;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;

/**
 * The calls of a wrapped producer. A proxy, because the interface has grown from version to
 * version: what is not about sending or transactions goes through as it is.
 */
final class AuditedCalls implements InvocationHandler {
    private final Producer<?, ?> producer;
    private final Session session;

    AuditedCalls(Producer<?, ?> producer, Session session) {
        this.producer = producer;
        this.session = session;
    }

    @Override
    public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
        switch (method.getName()) {
            case "send":
                return send((ProducerRecord<?, ?>) arguments[0],
                        arguments.length > 1 ? (Callback) arguments[1] : null);
            case "equals":
                return proxy == arguments[0];
            case "hashCode":
                return System.identityHashCode(proxy);
            case "beginTransaction":
                call(method, arguments);
                note(() -> session.transactionBegan());
                return null;
            case "commitTransaction":
                call(method, arguments);
                note(() -> session.transactionEnded(true));
                return null;
            case "abortTransaction":
                call(method, arguments);
                note(() -> session.transactionEnded(false));
                return null;
            case "close":
                try {
                    return call(method, arguments);
                } finally {
                    note(this::end);
                }
            default:
                return call(method, arguments);
        }
    }

    private Object call(Method method, Object[] arguments) throws Throwable {
        try {
            return method.invoke(producer, arguments);
        } catch (InvocationTargetException thrown) {
            throw thrown.getCause();
        }
    }

    private void end() {
        session.reporter.lastReport(session);
        session.on = false;
    }

    private void note(Runnable what) {
        try {
            what.run();
        } catch (Throwable error) {
            session.strike(error);
        }
    }

    @SuppressWarnings("unchecked")
    private <K, V> Future<RecordMetadata> send(ProducerRecord<K, V> record, Callback user) {
        Producer<K, V> inner = (Producer<K, V>) producer;
        ProducerRecord<K, V> audited;
        IdHeader header;
        try {
            audited = session.audited(record);
            header = audited == record
                    ? null : (IdHeader) audited.headers().lastHeader(IdHeader.NAME);
        } catch (Throwable error) {
            session.strike(error);
            return inner.send(record, user);
        }
        if (header == null) {
            return inner.send(record, user);
        }
        Told told = new Told(session, header, user);
        try {
            return inner.send(audited, told);
        } catch (Throwable thrown) {
            told.note(null, thrown);
            throw thrown;
        }
    }

    /** The callback of one record: notes, and calls the application's. */
    private static final class Told implements Callback {
        private final Session session;
        private final IdHeader header;
        private final Callback user;
        private boolean noted;

        Told(Session session, IdHeader header, Callback user) {
            this.session = session;
            this.header = header;
            this.user = user;
        }

        @Override
        public void onCompletion(RecordMetadata metadata, Exception error) {
            note(metadata, error);
            if (user != null) {
                user.onCompletion(metadata, error);
            }
        }

        private void note(RecordMetadata metadata, Throwable error) {
            try {
                if (session.on && !(noted && metadata == null)) {
                    noted = true;
                    session.outcome(header, metadata, error);
                }
            } catch (Throwable broken) {
                session.strike(broken);
            }
        }
    }
}
