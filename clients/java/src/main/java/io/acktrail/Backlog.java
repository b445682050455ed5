package io.acktrail;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Rows that wait to be sent, or to be acknowledged: bounded, oldest first.
 *
 * <p>Where memory ends, offsets of acks are forgotten first, then the oldest rows.
 */
final class Backlog {
    private final long most;
    private final Map<String, Waiting> clients = new LinkedHashMap<>();
    private long bytes;
    private long inFlight;

    Backlog(long mostBytes) {
        this.most = mostBytes;
    }

    /** More rows, and the newest heartbeats; the rows that had to be dropped for it. */
    synchronized List<Row> add(String key, List<Row> rows, List<Row> beats) {
        Waiting client = clients.computeIfAbsent(key, k -> new Waiting());
        for (Row row : rows) {
            client.rows.add(row);
            bytes += row.size();
        }
        client.beats = beats;
        client.beatsDue = !beats.isEmpty();
        if (bytes > most) {
            forgetOffsets();
        }
        List<Row> gone = new ArrayList<>();
        while (bytes > most && !client.rows.isEmpty()) {
            Row row = client.rows.poll();
            bytes -= row.size();
            gone.add(row);
        }
        forget(key, client);
        return gone;
    }

    /** Whether anything of the client is still to be sent or answered. */
    synchronized boolean waiting(String key) {
        return clients.containsKey(key);
    }

    synchronized boolean isEmpty() {
        return clients.isEmpty();
    }

    synchronized long inFlight() {
        return inFlight;
    }

    /** The next message: rows of one client, behind its heartbeats; null: there is none. */
    synchronized Message next(int mostBytes) {
        for (Map.Entry<String, Waiting> entry : clients.entrySet()) {
            Waiting client = entry.getValue();
            if (client.rows.isEmpty() && !client.beatsDue) {
                continue;
            }
            int room = mostBytes;
            for (Row beat : client.beats) {
                room -= beat.size() + 600;
            }
            List<Row> rows = new ArrayList<>();
            int size = 0;
            while (!client.rows.isEmpty()
                    && (rows.isEmpty() || size + client.rows.peek().size() <= room)) {
                Row row = client.rows.poll();
                size += row.size();
                rows.add(row);
            }
            client.beatsDue = false;
            client.inFlight++;
            inFlight += size;
            return new Message(entry.getKey(), rows, client.beats, size);
        }
        return null;
    }

    /** The audit topic has it. */
    synchronized void sent(Message message) {
        Waiting client = landed(message);
        bytes -= message.size;
        forget(message.key, client);
    }

    /** It has to be sent again, before what is newer. */
    synchronized void failed(Message message) {
        Waiting client = landed(message);
        for (int at = message.rows.size() - 1; at >= 0; at--) {
            client.rows.addFirst(message.rows.get(at));
        }
        client.beatsDue = true;
    }

    private Waiting landed(Message message) {
        Waiting client = clients.get(message.key);
        client.inFlight--;
        inFlight -= message.size;
        return client;
    }

    private void forget(String key, Waiting client) {
        if (client.rows.isEmpty() && !client.beatsDue && client.inFlight == 0) {
            clients.remove(key);
        }
    }

    private void forgetOffsets() {
        for (Waiting client : clients.values()) {
            Deque<Row> smaller = new ArrayDeque<>(client.rows.size());
            for (Row row : client.rows) {
                if (row.tier.equals("acked")) {
                    bytes -= row.size();
                    row = row.withoutOffsets();
                    bytes += row.size();
                }
                smaller.add(row);
            }
            client.rows = smaller;
        }
    }

    /** Rows of one client on their way; its heartbeats come first, with each message. */
    static final class Message {
        final String key;
        final List<Row> rows;
        final List<Row> beats;
        final int size;

        Message(String key, List<Row> rows, List<Row> beats, int size) {
            this.key = key;
            this.rows = rows;
            this.beats = beats;
            this.size = size;
        }
    }

    private static final class Waiting {
        private Deque<Row> rows = new ArrayDeque<>();
        private List<Row> beats = new ArrayList<>();
        private boolean beatsDue;
        private int inFlight;
    }
}
