package io.acktrail;

import java.lang.ref.WeakReference;
import java.util.IdentityHashMap;
import java.util.Map;

/**
 * Which id a failure is about, for clients before 4.1, whose callback does not have the record.
 *
 * <p>Each record goes out under a topic name that is a String of its own, and a failure names that
 * very String. A success does not: it names the String of the first record of its batch. So entries
 * of successes cannot be removed at the ack. They refer to their String weakly; once the client has
 * forgotten the record, the garbage collector clears the entry, and it is removed with the next
 * report, or when room is needed. Where there are more than {@link #MOST}, the oldest is forgotten:
 * should it fail after all, its id is counted as dropped.
 */
final class FreshTopics {
    static final int MOST = 1 << 17;
    private static final int MANY_STEPS = 1024;

    private Entry[] ring = new Entry[1024];
    private int head;
    private int used;
    private int cursor;
    private Map<String, Entry> index;

    /** A String of its own for the id. */
    synchronized String fresh(SentIds ids, long seq) {
        String topic = new String(ids.topic);
        if (used == ring.length) {
            makeRoom();
        }
        Entry entry = new Entry(topic, ids, seq);
        ring[(head + used++) & (ring.length - 1)] = entry;
        if (index != null) {
            index.put(topic, entry);
        }
        return topic;
    }

    /** The id that went out under this very String, which is then forgotten; null: none did. */
    synchronized Entry find(String topic) {
        if (index == null) {
            int steps = Math.min(used, MANY_STEPS);
            for (int step = 0; step < steps; step++) {
                int at = cursor + step < used ? cursor + step : cursor + step - used;
                int slot = (head + at) & (ring.length - 1);
                Entry entry = ring[slot];
                if (entry != null && entry.get() == topic) {
                    ring[slot] = null;
                    cursor = at + 1 < used ? at + 1 : 0;
                    return entry;
                }
            }
            if (steps == used) {
                return null;
            }
            makeIndex();
        }
        Entry found = index.remove(topic);
        if (found != null) {
            found.clear();
        }
        return found;
    }

    /** Remove what the garbage collector has cleared. */
    synchronized void reap() {
        index = null;
        int kept = 0;
        for (int at = 0; at < used; at++) {
            int from = (head + at) & (ring.length - 1);
            Entry entry = ring[from];
            if (entry != null && entry.get() != null) {
                int to = (head + kept++) & (ring.length - 1);
                ring[to] = entry;
            }
        }
        for (int at = kept; at < used; at++) {
            ring[(head + at) & (ring.length - 1)] = null;
        }
        used = kept;
        cursor = 0;
    }

    private void makeRoom() {
        while (used > 0 && (ring[head] == null || ring[head].get() == null)) {
            dropFirst();
        }
        if (used < ring.length) {
            return;
        }
        if (ring.length < MOST) {
            Entry[] larger = new Entry[2 * ring.length];
            for (int at = 0; at < used; at++) {
                larger[at] = ring[(head + at) & (ring.length - 1)];
            }
            ring = larger;
            head = 0;
            return;
        }
        if (index != null) {
            index.remove(ring[head].get());
        }
        dropFirst();
    }

    private void dropFirst() {
        ring[head] = null;
        head = (head + 1) & (ring.length - 1);
        used--;
        cursor = Math.max(0, cursor - 1);
    }

    private void makeIndex() {
        index = new IdentityHashMap<>();
        for (int at = 0; at < used; at++) {
            Entry entry = ring[(head + at) & (ring.length - 1)];
            String topic = entry == null ? null : entry.get();
            if (topic != null) {
                index.put(topic, entry);
            }
        }
    }

    /** One id under way. */
    static final class Entry extends WeakReference<String> {
        final SentIds ids;
        final long seq;

        Entry(String topic, SentIds ids, long seq) {
            super(topic);
            this.ids = ids;
            this.seq = seq;
        }
    }
}
