package io.acktrail;

import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;

/**
 * The header that names a message: session, number and create time; see docs/wire.md.
 *
 * <p>It carries the number for the callback too, so that nothing has to be looked up there.
 */
final class IdHeader implements Header {
    static final String NAME = "acktrail";
    static final int LENGTH = 33;
    private static final byte VERSION = 1;

    final Session session;
    final SentIds ids;
    final long seq;
    private final long createdMs;
    private byte[] value;

    IdHeader(Session session, SentIds ids, long seq, long createdMs) {
        this.session = session;
        this.ids = ids;
        this.seq = seq;
        this.createdMs = createdMs;
    }

    @Override
    public String key() {
        return NAME;
    }

    @Override
    public byte[] value() {
        byte[] made = value;
        if (made == null) {
            made = new byte[LENGTH];
            made[0] = VERSION;
            put(made, 1, session.high);
            put(made, 9, session.low);
            put(made, 17, seq);
            put(made, 25, createdMs);
            value = made;
        }
        return made;
    }

    /** Whether {@code value} is of a header of ours. */
    static boolean isOurs(byte[] value) {
        return value != null && value.length == LENGTH && value[0] == VERSION;
    }

    /** The 64 bits at {@code at}, big endian. */
    static long read(byte[] from, int at) {
        long found = 0;
        for (int i = at; i < at + 8; i++) {
            found = found << 8 | from[i] & 0xFF;
        }
        return found;
    }

    private static void put(byte[] into, int at, long number) {
        for (int i = 7; i >= 0; i--) {
            into[at + i] = (byte) (number >>> 8 * (7 - i));
        }
    }

    /** The value of the last header of ours: the id that the last hop gave; null: there is none. */
    static byte[] last(Headers headers) {
        Header last = headers.lastHeader(NAME);
        if (last == null) {
            return null;
        }
        byte[] value = last.value();
        if (isOurs(value)) {
            return value;
        }
        byte[] found = null;  // something on the way added headers of that name
        for (Header header : headers.headers(NAME)) {
            value = header.value();
            found = isOurs(value) ? value : found;
        }
        return found;
    }

    /** What of {@code headers} goes on: all, but of ids of earlier hops only the first. */
    static Iterable<Header> kept(Headers headers) {
        if (headers.lastHeader(NAME) == null) {
            return headers;
        }
        List<Header> kept = new ArrayList<>();
        boolean origin = true;
        for (Header header : headers) {
            if (NAME.equals(header.key())) {
                if (!origin) {
                    continue;
                }
                origin = false;
            }
            kept.add(header);
        }
        return kept;
    }

    /** A session that carries its start: 48 bits of time, the rest random, as UUIDv7. */
    static long[] newSession(long nowMs) {
        SecureRandom random = new SecureRandom();
        long high = nowMs << 16 | 0x7000 | random.nextInt(1 << 12);
        long low = 1L << 63 | random.nextLong() >>> 2;
        return new long[] {high, low};
    }

    static String hex(long high, long low) {
        return String.format("%016x%016x", high, low);
    }

    static String newReporter() {
        SecureRandom random = new SecureRandom();
        return hex(random.nextLong(), random.nextLong());
    }
}
