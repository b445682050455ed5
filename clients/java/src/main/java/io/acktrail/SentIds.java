package io.acktrail;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * What became of the ids of one session and topic, from one report to the next.
 *
 * <p>The application's threads and the client's I/O thread add to arrays, for which they never wait
 * longer than it takes the reporter to swap them.
 */
final class SentIds {
    /** Acks or errors that wait for a report, after which the reporter is woken. */
    static final int MANY = 100_000;
    private static final int MOST = 2 * MANY;
    private static final int FIRST_ROOM = 1024;
    private static final long MINUTE_MS = 60_000;
    private static final int MINUTES = 30;

    final String topic;
    private final AtomicLong next = new AtomicLong();
    private volatile long minuteEnds;

    // All below under this object's lock.
    private long[] minutes = new long[0];
    private long[] seqs = new long[FIRST_ROOM];
    private long[] offsets = new long[FIRST_ROOM];
    private int[] partitions = new int[FIRST_ROOM];
    private int acks;
    private List<OutcomeRows.Told> errors = new ArrayList<>();
    private Map<Integer, OffsetRuns> runs = new TreeMap<>();
    private List<long[]> ended = new ArrayList<>();
    private final Map<String, Long> lost = new TreeMap<>();
    private long settledCount;
    private boolean ackedSome;
    private long errorCount;
    private long unaudited;
    private long unauditedOutcomes;
    private long changedTopic;

    private final OutcomeRows rows;

    SentIds(String topic, boolean unacked, long nowMs) {
        this.topic = topic;
        this.rows = new OutcomeRows(topic, unacked, nowMs);
    }

    // -- called by the application's and the client's threads --------------------------------------

    /** The number of the next message. */
    long next(long nowMs) {
        long seq = next.getAndIncrement();
        if (nowMs >= minuteEnds) {
            noteMinute(nowMs, seq);
        }
        return seq;
    }

    private synchronized void noteMinute(long nowMs, long seq) {
        if (nowMs < minuteEnds) {
            return;
        }
        minuteEnds = nowMs - nowMs % MINUTE_MS + MINUTE_MS;
        int keep = Math.min(minutes.length, 2 * (MINUTES - 1));
        long[] newer = Arrays.copyOfRange(minutes, minutes.length - keep, minutes.length + 2);
        newer[keep] = nowMs / MINUTE_MS;
        newer[keep + 1] = seq;
        minutes = newer;
    }

    /** An ack; true where many wait for a report. */
    synchronized boolean acked(long seq, int partition, long offset) {
        settledCount++;
        if (acks >= MOST) {
            lose("acked", 1);
            return true;
        }
        if (acks == seqs.length) {
            seqs = Arrays.copyOf(seqs, 2 * acks);
            offsets = Arrays.copyOf(offsets, 2 * acks);
            partitions = Arrays.copyOf(partitions, 2 * acks);
        }
        seqs[acks] = seq;
        offsets[acks] = offset;
        partitions[acks++] = partition;
        return acks == MANY;
    }

    /** An ack of one of the ids, it is not known which. */
    synchronized void ackedSome(int partition, long offset) {
        settledCount++;
        ackedSome = true;
        runs.computeIfAbsent(partition, p -> new OffsetRuns()).add(offset);
    }

    /** One of the ids was handed to the network, and no answer is expected. */
    synchronized void settledSome() {
        settledCount++;
    }

    /** An error; true where many wait for a report. */
    synchronized boolean told(long seq, int partition, String error) {
        settledCount++;
        errorCount++;
        if (errors.size() >= MOST) {
            lose(SendErrors.tier(error), 1);
            return true;
        }
        errors.add(new OutcomeRows.Told(seq, partition, error));
        return errors.size() == MANY;
    }

    /** An outcome of a record without an id of ours: evidence is lost, unless it never had one. */
    synchronized void outcomeWithoutId() {
        if (unauditedOutcomes < unaudited) {
            unauditedOutcomes++;
        } else {
            lose("acked", 1);
        }
    }

    /** A message that was sent without an id. */
    synchronized void sentUnaudited() {
        unaudited++;
    }

    /** Something behind us sent the message to another topic. */
    synchronized void topicChanged() {
        changedTopic++;
        settledCount++;
        lose("acked", 1);
    }

    /** The transaction of these ids is {@code committed} (1) or {@code aborted} (0). */
    synchronized void transactionEnded(boolean committed, long first, long last) {
        ended.add(new long[] {committed ? 1 : 0, first, last});
    }

    /** Evidence about {@code count} ids was thrown away. */
    synchronized void lose(String tier, long count) {
        lost.merge(tier, count, Long::sum);
    }

    /** No outcome is noted from here on. */
    synchronized void abandon() {
        long open = next.get() - settledCount;
        if (open > 0) {
            lose("acked", open);
        }
    }

    long handedOver() {
        return next.get();
    }

    synchronized long open() {
        return next.get() - settledCount;
    }

    synchronized long errors() {
        return errorCount;
    }

    /** Bytes that wait for the next report. */
    synchronized int waiting() {
        int found = acks * 20 + errors.size() * 48;
        for (OffsetRuns one : runs.values()) {
            found += one.bytes();
        }
        return found;
    }

    // -- called by the reporter --------------------------------------------------------------------

    /** Fill in what a heartbeat says of this topic. */
    synchronized void describe(Row beat) {
        beat.records = next.get();
        beat.minutes = minutes;
        beat.dropped = new TreeMap<>(lost);
        long over = settledCount - beat.records;
        if (ackedSome && over > 0) {
            beat.dropped.merge("acked_offsets", over, Long::sum);  // told twice of one id
        }
        if (unaudited > 0 || changedTopic > 0) {
            Map<String, String> more = new LinkedHashMap<>(beat.settings);
            more.put("unaudited", Long.toString(unaudited));
            if (changedTopic > 0) {
                more.put("topic_changed", Long.toString(changedTopic));
            }
            beat.settings = more;
        }
        beat.outcomes = rows.outcomes();
    }

    /** The rows of what came since the last report. */
    List<Row> take(long nowMs) {
        long[] ackedSeqs;
        long[] ackedOffsets;
        int[] ackedPartitions;
        int count;
        List<OutcomeRows.Told> toldErrors;
        Map<Integer, OffsetRuns> ackedRuns;
        List<long[]> endings;
        long end;
        synchronized (this) {
            end = next.get();
            count = acks;
            ackedSeqs = seqs;
            ackedOffsets = offsets;
            ackedPartitions = partitions;
            if (count > 0) {
                int room = Math.max(FIRST_ROOM, Math.min(count, MANY));
                seqs = new long[room];
                offsets = new long[room];
                partitions = new int[room];
                acks = 0;
            }
            toldErrors = errors;
            errors = new ArrayList<>();
            ackedRuns = runs;
            runs = new TreeMap<>();
            endings = ended;
            ended = new ArrayList<>();
        }
        rows.until(nowMs);
        List<Row> found = new ArrayList<>();
        rows.sent(found, end);
        int lostAcks = rows.acked(found, ackedSeqs, ackedPartitions, ackedOffsets, count);
        if (lostAcks > 0) {
            lose("acked", lostAcks);
        }
        rows.ackedSome(found, ackedRuns);
        rows.told(found, toldErrors);
        for (long[] one : endings) {
            rows.ranges(found, one[0] == 1 ? "committed" : "aborted", one[1], one[2]);
        }
        return found;
    }

    /** Ids without an outcome, of which everything was taken before, as told {@code error}. */
    List<Row> leftOpen(String error) {
        return rows.leftOpen(error);
    }

    /** With acks=0 and acks without ids: all ids that were told nothing else were sent. */
    List<Row> restUnacked() {
        return rows.restUnacked();
    }
}
