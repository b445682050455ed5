package io.acktrail;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.errors.TimeoutException;

/**
 * One daemon thread and one producer that send what the clients of one audit target noted.
 *
 * <p>Whatever fails here stays here: nothing is thrown into the application, and nothing waits for
 * the audit cluster but this thread, and {@code close()} for at most {@code acktrail.close.ms}.
 */
final class Reporter {
    private static final int MOST_BYTES = 900_000;
    private static final long IN_FLIGHT_BYTES = 2_000_000;
    private static final int MANY_WAITING = 2_000_000;
    private static final int PATIENCE = 3;
    private static final long TURN_MS = 500;
    private static final long NAP_MS = 20;
    private static final long LEAST_PAUSE_MS = 200;
    private static final long IDLE_MS = 30_000;

    private final AuditSettings audit;
    private final int index;
    private final Set<Client> clients = ConcurrentHashMap.newKeySet();
    private final LinkedBlockingQueue<Last> tasks = new LinkedBlockingQueue<>();
    private final Backlog backlog;
    /** Clients that had their last report because the process ends; a close may still follow. */
    private final Set<Client> atExit = new HashSet<>();
    private final List<Last> ending = new ArrayList<>();
    private Thread thread;
    private final AtomicInteger timeouts = new AtomicInteger();
    private volatile boolean woken;
    private volatile boolean refused;
    private KafkaProducer<byte[], byte[]> producer;
    private long number;
    private volatile String clusterId;

    Reporter(AuditSettings audit, int index) {
        this.audit = audit;
        this.index = index;
        this.backlog = new Backlog(audit.memoryBytes * 5 / 8);
    }

    // -- called by any thread ----------------------------------------------------------------------

    /** Report what {@code client} notes from now on. */
    void add(Client client) {
        if (refused) {
            client.on = false;
            return;
        }
        clients.add(client);
        if (clusterId != null) {
            clusterIs(clusterId);
        }
        start();
    }

    private synchronized void start() {
        if (thread == null) {
            thread = new Thread(this::run, "acktrail-reporter-" + index);
            thread.setDaemon(true);
            thread.start();
        }
    }

    /** Report now: much is waiting. */
    void wake() {
        woken = true;
        tasks.offer(new Last(null, Client.Ending.NONE));
    }

    /** What {@code client} has noted, and that it was closed; waits a second at most. */
    void lastReport(Client client) {
        if (clients.remove(client) && !refused) {
            wait(ask(client, Client.Ending.CLOSED), audit.closeMs);
        }
    }

    private CountDownLatch ask(Client client, Client.Ending why) {
        Last last = new Last(client, why);
        tasks.offer(last);
        start();
        return last.done;
    }

    private static void wait(CountDownLatch done, long mostMs) {
        try {
            if (!done.await(mostMs, TimeUnit.MILLISECONDS)) {
                complain("the last report was not taken in time", null);
            }
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** The process ends: last reports of clients that are not closed, in a second at most. */
    void processEnds() {
        long ends = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(audit.closeMs);
        long patience = ends - TimeUnit.MILLISECONDS.toNanos(audit.closeMs * 3 / 4);
        try {
            // The application may be closing them just now.
            while (System.nanoTime() < patience && clients.stream().anyMatch(Client::hasOpen)) {
                Thread.sleep(NAP_MS);
            }
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
        List<CountDownLatch> asked = new ArrayList<>();
        for (Client client : clients) {
            asked.add(ask(client, Client.Ending.PROCESS));
        }
        for (CountDownLatch one : asked) {
            wait(one, Math.max(0, TimeUnit.NANOSECONDS.toMillis(ends - System.nanoTime())));
        }
    }

    // -- the thread --------------------------------------------------------------------------------

    private void run() {
        long due = now() + pause();
        long idleSince = now();
        while (true) {
            try {
                Last last = tasks.poll(ending.isEmpty() ? TURN_MS : NAP_MS, TimeUnit.MILLISECONDS);
                for (; last != null; last = tasks.poll()) {
                    if (last.client != null) {
                        if (last.why == Client.Ending.PROCESS) {
                            atExit.add(last.client);
                        }
                        take(last.client, last.why);
                        ending.add(last);
                    }
                }
                if (now() >= due || woken || waiting() > MANY_WAITING) {
                    woken = false;
                    due = now() + pause();
                    for (Client client : clients) {
                        if (!atExit.contains(client)) {
                            take(client, Client.Ending.NONE);
                        }
                    }
                    Thread.sleep(NAP_MS);
                }
                send();
                release();
                if (!clients.isEmpty() || !backlog.isEmpty()) {
                    idleSince = now();
                } else if (now() - idleSince > IDLE_MS && retire()) {
                    return;
                }
            } catch (Throwable error) {
                complain("a report failed", error);
                nap();
            }
        }
    }

    private static void nap() {
        try {
            Thread.sleep(LEAST_PAUSE_MS);
        } catch (InterruptedException ignored) {
            Client.log.debug("interrupted");
        }
    }

    private long waiting() {
        long found = 0;
        for (Client client : clients) {
            found += client.waiting();
        }
        return found;
    }

    /** All clients are closed and all is sent: end the thread and its producer. */
    private synchronized boolean retire() {
        if (!clients.isEmpty() || !tasks.isEmpty()) {
            return false;
        }
        if (producer != null) {
            producer.close(Duration.ZERO);
            producer = null;
        }
        thread = null;
        return true;
    }

    private static long now() {
        return TimeUnit.NANOSECONDS.toMillis(System.nanoTime());
    }

    private long pause() {
        return (long) (audit.intervalMs * ThreadLocalRandom.current().nextDouble(0.9, 1.1));
    }

    /** A fault in one client's notes ends that client's audit alone. */
    private void take(Client client, Client.Ending why) {
        List<Row> beats = new ArrayList<>();
        List<Row> rows = new ArrayList<>();
        boolean off = !client.on;
        try {
            long nowMs = System.currentTimeMillis();
            client.take(nowMs, why, beats, rows);
            number++;
            for (List<Row> some : Arrays.asList(beats, rows)) {
                for (Row row : some) {
                    row.reporter = client.reporterId;
                    row.number = number;
                    row.reportedMs = nowMs;
                }
            }
            for (Row row : backlog.add(client.key(), rows, beats)) {
                client.dropped(row);
            }
        } catch (Throwable error) {
            off = !client.on;
            client.switchOff(error);
        }
        if (off) {
            clients.remove(client);
        }
    }

    /** Let go of those whose last report has arrived. */
    private void release() {
        for (Iterator<Last> all = ending.iterator(); all.hasNext();) {
            Last last = all.next();
            if (!backlog.waiting(last.client.key()) || refused) {
                last.done.countDown();
                all.remove();
            } else if (now() - last.since > 10 * audit.closeMs + 1_000) {
                all.remove();  // nobody waits for it any more; it is sent all the same
            }
        }
    }

    /** Hand over what waits, as far as little is on its way. */
    private void send() {
        KafkaProducer<byte[], byte[]> open = open();
        while (open != null && backlog.inFlight() < IN_FLIGHT_BYTES) {
            Backlog.Message message = backlog.next(MOST_BYTES);
            if (message == null) {
                return;
            }
            Answer answer = new Answer(message);
            try {
                byte[] text = Row.message(message.beats, message.rows);
                byte[] key = message.key.getBytes(StandardCharsets.UTF_8);
                open.send(new ProducerRecord<>(audit.topic, key, text), answer);
            } catch (Throwable error) {
                answer.onCompletion(null, error instanceof Exception
                        ? (Exception) error : new IllegalStateException(error));
            }
            if (answer.failed) {
                return;  // refused at once: at the next turn again
            }
        }
    }

    /** What became of one message. */
    private final class Answer implements Callback {
        private final Backlog.Message message;
        private boolean came;
        private volatile boolean failed;

        private Answer(Backlog.Message message) {
            this.message = message;
        }

        @Override
        public synchronized void onCompletion(RecordMetadata metadata, Exception error) {
            if (!came) {
                came = true;
                failed = error != null;
                answer(message, error);
            }
        }
    }

    private void answer(Backlog.Message message, Throwable error) {
        try {
            if (error == null) {
                timeouts.set(0);
                backlog.sent(message);
                if (!ending.isEmpty()) {
                    tasks.offer(new Last(null, Client.Ending.NONE));
                }
            } else {
                backlog.failed(message);
                if (error instanceof TimeoutException && timeouts.incrementAndGet() < PATIENCE) {
                    return;  // the first metadata of a busy process may take longer
                }
                complain("the audit topic " + audit.topic + " takes no reports", error);
            }
        } catch (Throwable broken) {
            complain("a report failed", broken);
        }
    }

    /** The reporter's own producer; null where its settings are refused. */
    private KafkaProducer<byte[], byte[]> open() {
        if (producer == null && !refused) {
            try {
                ReportBytes bytes = new ReportBytes(this);
                producer = new KafkaProducer<>(settings(), bytes, bytes);
            } catch (Throwable error) {
                refused = true;
                complain("the audit is off, its settings are refused", error);
                for (Client client : clients) {
                    client.on = false;
                }
                clients.clear();
            }
        }
        return producer;
    }

    private Map<String, Object> settings() {
        Map<String, Object> made = new HashMap<>();
        made.put("acks", "all");
        made.put("enable.idempotence", "false");
        made.put("compression.type", "gzip");
        made.put("linger.ms", "5");
        made.put("max.block.ms", "1000");
        made.put("request.timeout.ms", "10000");
        made.put("delivery.timeout.ms", "30000");
        made.put("buffer.memory", "4194304");
        made.put("max.request.size", "1000000");
        made.put("reconnect.backoff.ms", "500");
        made.put("reconnect.backoff.max.ms", "10000");
        made.put("client.id", "acktrail-reporter-" + index);
        if (ProducerConfig.configNames().contains("enable.metrics.push")) {
            made.put("enable.metrics.push", "false");
        }
        made.putAll(audit.access);
        return made;
    }

    /** The cluster of the audit topic, where clients have taken it from their own settings. */
    void clusterIs(String id) {
        clusterId = id;
        for (Client client : clients) {
            if (client.clusterId == null && !client.audit.elsewhere) {
                client.clusterId = id;
            }
        }
    }

    /** One ERROR line for each kind of problem; after that it is only counted. */
    private static void complain(String kind, Throwable error) {
        if (Reporters.problem(kind)) {
            Client.log.error("{}{}. The application goes on; Audit.problems() counts.",
                    kind, error == null ? "" : ": " + error);
        }
    }

    /** Somebody waits for the last report of a client; without a client: only a new turn. */
    private static final class Last {
        final Client client;
        final Client.Ending why;
        final long since = now();
        final CountDownLatch done = new CountDownLatch(1);

        Last(Client client, Client.Ending why) {
            this.client = client;
            this.why = why;
        }
    }
}
