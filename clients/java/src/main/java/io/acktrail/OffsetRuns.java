package io.acktrail;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Offsets that were acked in one partition, nearly contiguous: a list of runs. */
final class OffsetRuns {
    /** First offset, and length, one after the other. */
    private long[] runs = new long[16];
    private int used;
    private long acks;
    private long unknown;

    /** One ack; an offset below 0 is not known. */
    void add(long offset) {
        acks++;
        if (offset < 0) {
            unknown++;
        } else if (used > 0 && runs[used - 2] + runs[used - 1] == offset) {
            runs[used - 1]++;
        } else {
            if (used == runs.length) {
                runs = Arrays.copyOf(runs, 2 * used);
            }
            runs[used++] = offset;
            runs[used++] = 1;
        }
    }

    int bytes() {
        return used * 8;
    }

    /** Rows of tier {@code acked_offsets}: one per block of offsets, and one for acks without. */
    List<Row> rows(String topic, int partition, Row.SpanMs span) {
        List<Row> rows = new ArrayList<>();
        long[] all = new long[(int) (acks - unknown)];
        int count = 0;
        for (int at = 0; at < used; at += 2) {
            for (long i = 0; i < runs[at + 1]; i++) {
                all[count++] = runs[at] + i;
            }
        }
        Arrays.sort(all);
        int[] ids = new int[Math.min(count, RunLists.BLOCK_IDS)];
        int at = 0;
        while (at < count) {
            long block = all[at] >> RunLists.BLOCK_BITS;
            int first = at;
            int distinct = 0;
            while (at < count && all[at] >> RunLists.BLOCK_BITS == block) {
                int id = (int) (all[at] & RunLists.IN_BLOCK);
                if (distinct == 0 || ids[distinct - 1] != id) {
                    ids[distinct++] = id;
                }
                at++;
            }
            Row row = row(topic, partition, block, at - first, span);
            row.ids = RunLists.ofIds(ids, distinct);
            row.firstOffset = all[first];
            row.lastOffset = all[at - 1];
            rows.add(row);
        }
        if (unknown > 0) {
            Row row = row(topic, partition, 0, unknown, span);
            row.ids = RunLists.ofIds(ids, 0);
            rows.add(row);
        }
        return rows;
    }

    private static Row row(String topic, int partition, long block, long records, Row.SpanMs span) {
        Row row = new Row("acked_offsets", topic).from(span);
        row.partition = partition;
        row.block = block;
        row.records = records;
        return row;
    }
}
