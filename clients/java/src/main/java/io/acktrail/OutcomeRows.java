package io.acktrail;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * The rows of one session and topic, and which ids have an outcome already. Of the reporter's thread
 * alone.
 */
final class OutcomeRows {
    private final String topic;
    private final boolean unacked;
    private long reported;
    private long rested;
    private Row.SpanMs span;
    private final Map<Long, Long> outcomes = new TreeMap<>();
    private final Map<Long, Marks> settled = new HashMap<>();
    private final Set<Long> full = new HashSet<>();

    OutcomeRows(String topic, boolean unacked, long nowMs) {
        this.topic = topic;
        this.unacked = unacked;
        this.span = new Row.SpanMs(nowMs, nowMs);
    }

    /** The rows that follow are about what came until now. */
    void until(long nowMs) {
        span = new Row.SpanMs(span.ended, nowMs);
    }

    /** Per 64 blocks, of how many ids an outcome was reported. */
    Map<String, Long> outcomes() {
        Map<String, Long> counted = new LinkedHashMap<>();
        outcomes.forEach((bucket, count) -> counted.put(bucket.toString(), count));
        return counted;
    }

    /** Ids below {@code end} were handed over. */
    void sent(List<Row> rows, long end) {
        if (end > reported) {
            ranges(rows, "sent", reported, end - 1);
            reported = end;
        }
    }

    /** Acks of ids that are not known. */
    void ackedSome(List<Row> rows, Map<Integer, OffsetRuns> runs) {
        runs.forEach((place, found) -> rows.addAll(found.rows(topic, place, span)));
    }

    /** Ids without an outcome, of which everything was taken before, as told {@code error}. */
    List<Row> leftOpen(String error) {
        List<Told> left = new ArrayList<>();
        for (long[] run : open(reported)) {
            for (long seq = run[0]; seq <= run[1]; seq++) {
                left.add(new Told(seq, -1, error));
            }
        }
        List<Row> rows = new ArrayList<>();
        told(rows, left);
        return rows;
    }

    /** With acks=0 and acks without ids: all ids that were told nothing else were sent. */
    List<Row> restUnacked() {
        List<Row> rows = new ArrayList<>();
        for (long[] run : open(reported)) {
            ranges(rows, "sent_unacked", Math.max(run[0], rested), run[1]);
        }
        rested = reported;
        rows.forEach(row -> outcomes.merge(row.block >> 6, row.records, Long::sum));
        return rows;
    }

    /** Runs of ids below {@code end} without an outcome, first and last, within blocks. */
    private List<long[]> open(long end) {
        List<long[]> found = new ArrayList<>();
        for (long base = 0; base < end; base += RunLists.BLOCK_IDS) {
            long block = base >> RunLists.BLOCK_BITS;
            long top = Math.min(end, base + RunLists.BLOCK_IDS);
            Marks marks = settled.get(block);
            if (marks == null) {
                if (!full.contains(block)) {
                    found.add(new long[] {base, top - 1});
                }
                continue;
            }
            long[] run = null;
            for (long seq = base; seq < top; seq++) {
                if (marks.has((int) (seq - base))) {
                    run = null;
                } else if (run == null) {
                    run = new long[] {seq, seq};
                    found.add(run);
                } else {
                    run[1] = seq;
                }
            }
        }
        return found;
    }

    void ranges(List<Row> rows, String tier, long first, long last) {
        long at = first;
        while (at <= last) {
            long end = Math.min(last, at | RunLists.IN_BLOCK);
            Row row = new Row(tier, topic).from(span);
            row.block = at >> RunLists.BLOCK_BITS;
            row.ids = RunLists.ofRange(
                    (int) (at & RunLists.IN_BLOCK), (int) (end & RunLists.IN_BLOCK));
            row.records = end - at + 1;
            rows.add(row);
            at = end + 1;
        }
    }

    /** Acks; how many were left out, their offsets too large. */
    int acked(List<Row> rows, long[] seqs, int[] places, long[] at, int count) {
        int lost = 0;
        Map<String, IdPlaces> found = new LinkedHashMap<>();
        Map<String, long[]> keys = new HashMap<>();
        IdPlaces last = null;
        long[] lastKey = {-1, -1, -1};
        for (int i = 0; i < count; i++) {
            long known = at[i] >= 0 ? 1 : 0;
            long block = seqs[i] >> RunLists.BLOCK_BITS;
            if (last == null || lastKey[0] != known || lastKey[1] != places[i]
                    || lastKey[2] != block) {
                String key = known + ":" + places[i] + ":" + block;
                long[] parts = {known, places[i], block};
                last = found.computeIfAbsent(key, k -> new IdPlaces());
                keys.put(key, parts);
                lastKey = parts;
            }
            if (!last.add(seqs[i], at[i])) {
                lost++;
            }
        }
        for (Map.Entry<String, IdPlaces> entry : found.entrySet()) {
            long[] key = keys.get(entry.getKey());
            IdPlaces ids = entry.getValue();
            int[] all = ids.ids();
            settle(key[2], all);
            if (key[0] == 0) {
                Row row = new Row(unacked ? "sent_unacked" : "acked_no_offset", topic).from(span);
                row.partition = (int) key[1];
                row.block = key[2];
                row.ids = RunLists.ofIds(all, all.length);
                row.records = ids.count();
                rows.add(row);
                continue;
            }
            for (IdPlaces.Layer layer : ids.layers()) {
                Row row = new Row("acked", topic).from(span);
                row.partition = (int) key[1];
                row.block = key[2];
                row.ids = layer.runList();
                row.records = layer.count;
                row.firstOffset = layer.first;
                row.lastOffset = layer.last;
                rows.add(row);
            }
        }
        return lost;
    }

    void told(List<Row> rows, List<Told> errors) {
        Map<String, IdPlaces> found = new LinkedHashMap<>();
        Map<String, Told> keys = new HashMap<>();
        for (Told one : errors) {
            long block = one.seq >> RunLists.BLOCK_BITS;
            String key = one.error + ":" + one.partition + ":" + block;
            keys.putIfAbsent(key, one);
            found.computeIfAbsent(key, k -> new IdPlaces()).add(one.seq, 0);
        }
        for (Map.Entry<String, IdPlaces> entry : found.entrySet()) {
            Told key = keys.get(entry.getKey());
            int[] ids = entry.getValue().ids();
            long block = key.seq >> RunLists.BLOCK_BITS;
            settle(block, ids);
            Row row = new Row(SendErrors.tier(key.error), topic).from(span);
            row.partition = key.partition;
            row.block = block;
            row.ids = RunLists.ofIds(ids, ids.length);
            row.records = ids.length;
            row.errors = Collections.singletonMap(
                    key.error, Integer.toString(ids.length));
            rows.add(row);
        }
    }

    /** Note which ids of the block have an outcome; a full block needs no more memory. */
    private void settle(long block, int[] ids) {
        if (full.contains(block)) {
            return;
        }
        Marks marks = settled.computeIfAbsent(block, b -> new Marks());
        long fresh = marks.add(ids);
        if (fresh > 0) {
            outcomes.merge(block >> 6, fresh, Long::sum);
        }
        if (marks.count == RunLists.BLOCK_IDS) {
            full.add(block);
            settled.remove(block);
        }
    }

    /** What the application was told of one id. */
    static final class Told {
        final long seq;
        final int partition;
        final String error;

        Told(long seq, int partition, String error) {
            this.seq = seq;
            this.partition = partition;
            this.error = error;
        }
    }

    /** A bit for each id of a block. */
    private static final class Marks {
        private final long[] bits = new long[RunLists.BLOCK_IDS / 64];
        int count;

        boolean has(int id) {
            return (bits[id >> 6] & 1L << id) != 0;
        }

        int add(int[] ids) {
            int before = count;
            for (int id : ids) {
                if (!has(id)) {
                    bits[id >> 6] |= 1L << id;
                    count++;
                }
            }
            return count - before;
        }
    }
}
