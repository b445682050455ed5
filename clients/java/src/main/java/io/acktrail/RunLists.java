package io.acktrail;

import java.io.ByteArrayOutputStream;

/** Run lists: sets of ids of one block, with offsets where known; see docs/wire.md. */
final class RunLists {
    static final int BLOCK_BITS = 15;
    static final int BLOCK_IDS = 1 << BLOCK_BITS;
    static final int IN_BLOCK = BLOCK_IDS - 1;
    private static final int BITMAP_BYTES = BLOCK_IDS / 8;

    private RunLists() {
    }

    /** The run list of the first {@code count} of {@code ids}, in order, each there once. */
    static byte[] ofIds(int[] ids, int count) {
        ByteArrayOutputStream out = new ByteArrayOutputStream(64);
        out.write(0);
        int end = 0;
        int at = 0;
        while (at < count) {
            int first = ids[at];
            int last = first;
            while (++at < count && ids[at] == last + 1) {
                last++;
            }
            put(out, first - end);
            put(out, last - first);
            end = last + 1;
        }
        return out.size() <= BITMAP_BYTES ? out.toByteArray() : bitmap(ids, count);
    }

    /** The run list of all ids from {@code first} to {@code last}. */
    static byte[] ofRange(int first, int last) {
        ByteArrayOutputStream out = new ByteArrayOutputStream(8);
        out.write(0);
        put(out, first);
        put(out, last - first);
        return out.toByteArray();
    }

    /** The run list of ids with offsets, in the order of ids, each id once. */
    static byte[] ofOffsets(int[] ids, long[] offsets, int count) {
        ByteArrayOutputStream out = new ByteArrayOutputStream(64);
        out.write(2);
        int end = 0;
        long after = 0;
        int at = 0;
        while (at < count) {
            int start = at;
            while (++at < count && ids[at] == ids[at - 1] + 1 && offsets[at] == offsets[at - 1] + 1) {
                continue;
            }
            int length = at - start;
            long delta = offsets[start] - after;
            put(out, ids[start] - end);
            put(out, length - 1);
            put(out, (delta << 1) ^ (delta >> 63));
            end = ids[start] + length;
            after = offsets[start] + length;
        }
        return out.toByteArray();
    }

    /** A run list with offsets as one without them. */
    static byte[] withoutOffsets(byte[] text) {
        int[] ids = new int[BLOCK_IDS];
        int count = 0;
        int end = 0;
        int field = 0;
        int gap = 0;
        long value = 0;
        int shift = 0;
        for (int at = 1; at < text.length; at++) {
            value |= (long) (text[at] & 0x7F) << shift;
            shift += 7;
            if (text[at] < 0) {
                continue;
            }
            if (field == 0) {
                gap = (int) value;
            } else if (field == 1) {
                int first = end + gap;
                end = first + (int) value + 1;
                for (int id = first; id < end; id++) {
                    ids[count++] = id;
                }
            }
            field = (field + 1) % 3;
            value = 0;
            shift = 0;
        }
        return ofIds(ids, count);
    }

    private static byte[] bitmap(int[] ids, int count) {
        byte[] bits = new byte[1 + BITMAP_BYTES];
        bits[0] = 1;
        for (int at = 0; at < count; at++) {
            bits[1 + (ids[at] >> 3)] |= (byte) (1 << (ids[at] & 7));
        }
        return bits;
    }

    /** One number in LEB128: seven bits a byte, lowest first, the high bit: more follow. */
    private static void put(ByteArrayOutputStream out, long number) {
        long left = number;
        while ((left & ~0x7FL) != 0) {
            out.write((int) (left & 0x7F | 0x80));
            left >>>= 7;
        }
        out.write((int) left);
    }
}
