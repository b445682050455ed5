package io.acktrail;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Ids of one block with their offsets: packed, so that sorting is of plain numbers. */
final class IdPlaces {
    private static final long MOST_OFFSET = (1L << 48) - 1;
    private long[] packed = new long[64];
    private int count;

    /** One id; false where the offset does not fit. */
    boolean add(long seq, long offset) {
        if (offset > MOST_OFFSET) {
            return false;
        }
        if (count == packed.length) {
            packed = Arrays.copyOf(packed, 2 * count);
        }
        packed[count++] = (seq & RunLists.IN_BLOCK) << 48 | Math.max(offset, 0);
        return true;
    }

    int count() {
        return count;
    }

    int bytes() {
        return packed.length * 8;
    }

    /** Its ids in order, each once. */
    int[] ids() {
        Arrays.sort(packed, 0, count);
        int[] ids = new int[count];
        int distinct = 0;
        for (int at = 0; at < count; at++) {
            int id = (int) (packed[at] >>> 48);
            if (distinct == 0 || ids[distinct - 1] != id) {
                ids[distinct++] = id;
            }
        }
        return Arrays.copyOf(ids, distinct);
    }

    /** Run lists with offsets; a further one for ids that came again at another offset. */
    List<Layer> layers() {
        Arrays.sort(packed, 0, count);
        List<Layer> layers = new ArrayList<>();
        int id = -1;
        int depth = 0;
        long before = -1;
        for (int at = 0; at < count; at++) {
            int next = (int) (packed[at] >>> 48);
            if (packed[at] == before) {
                continue;
            }
            before = packed[at];
            depth = next == id ? depth + 1 : 0;
            id = next;
            if (depth == layers.size()) {
                layers.add(new Layer(depth == 0 ? count : 16));
            }
            layers.get(depth).add(id, packed[at] & MOST_OFFSET);
        }
        return layers;
    }

    /** Ids, each once, with offsets. */
    static final class Layer {
        int[] ids;
        private long[] offsets;
        int count;
        long first = Long.MAX_VALUE;
        long last = -1;

        Layer(int room) {
            ids = new int[room];
            offsets = new long[room];
        }

        void add(int id, long offset) {
            if (count == ids.length) {
                ids = Arrays.copyOf(ids, 2 * count);
                offsets = Arrays.copyOf(offsets, 2 * count);
            }
            ids[count] = id;
            offsets[count++] = offset;
            first = Math.min(first, offset);
            last = Math.max(last, offset);
        }

        byte[] runList() {
            return RunLists.ofOffsets(ids, offsets, count);
        }
    }
}
