package io.acktrail;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.DoubleSupplier;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * What a member of a group was given, per partition: ranges of offsets, and ids with offsets.
 *
 * <p>An interceptor never sees rebalances. The client's own counter tells whether there was one
 * between two offsets; if so, or if it cannot be known, the member is not said to have passed over
 * what lies between. The parts of one assignment are all reported again with each later one.
 */
final class ReadOffsets {
    private static final int MOST_PARTS = 32;

    private final String group;
    private final DoubleSupplier rebalances;
    private final Map<TopicPartition, Place> places = new LinkedHashMap<>();
    private final List<Place> left = new ArrayList<>();
    private final Set<String> topics = new TreeSet<>();
    private long assignments;
    private int part;
    private int waiting;

    ReadOffsets(String group, DoubleSupplier rebalances) {
        this.group = group;
        this.rebalances = rebalances;
    }

    Set<String> topics() {
        return topics;
    }

    int waiting() {
        return waiting;
    }

    void read(TopicPartition at, List<? extends ConsumerRecord<?, ?>> records, long nowMs) {
        Place place = places.get(at);
        Range range = place == null ? null : place.last();
        ConsumerRecord<?, ?> before = null;
        for (ConsumerRecord<?, ?> record : records) {
            if (range == null || range.last + 1 != record.offset()) {
                end(range, before, nowMs);
                place = placeAfterJump(at, place);
                range = new Range(++part, record.offset(), nowMs);
                place.ranges.add(range);
            }
            range.last = record.offset();
            range.records++;
            before = record;
            byte[] id = IdHeader.last(record.headers());
            if (id != null && place.note(id, record.offset())) {
                waiting += 8;
            }
        }
        end(range, before, nowMs);
        if (place != null) {
            place.changed = true;
        }
    }

    /** A range has the epoch and the time of its last record. */
    private static void end(Range range, ConsumerRecord<?, ?> last, long nowMs) {
        if (range != null && last != null) {
            range.epoch = last.leaderEpoch().orElse(null);
            range.endedMs = nowMs;
        }
    }

    /** The first record of a partition, or one that does not follow the one before. */
    private Place placeAfterJump(TopicPartition at, Place before) {
        double now = rebalances.getAsDouble();
        boolean same = before != null && before.rebalances == now && before.ranges.size() < MOST_PARTS;
        if (same && before.assignment != null) {
            return before;
        }
        if (before != null) {
            before.changed = true;
            left.add(before);
        }
        topics.add(at.topic());
        Place place = new Place(at, now > 0 ? ++assignments : null, now);
        places.put(at, place);
        return place;
    }

    void take(long nowMs, List<Row> rows) {
        List<Place> all = new ArrayList<>(left);
        left.clear();
        all.addAll(places.values());
        for (Place place : all) {
            if (place.changed) {
                place.changed = false;
                for (Range range : place.ranges) {
                    rows.add(consumed(place, range));
                }
            }
        }
        for (Place place : all) {
            place.ids.forEach((id, found) -> delivered(place, id, found, nowMs, rows));
            place.forgetIds();
        }
        waiting = 0;
    }

    private Row consumed(Place place, Range range) {
        Row row = new Row("consumed", place.at.topic()).from(
                new Row.SpanMs(range.beganMs, range.endedMs));
        row.partition = place.at.partition();
        row.group = group;
        row.part = range.part;
        row.assignment = place.assignment;
        row.firstOffset = range.first;
        row.lastOffset = range.last;
        row.records = range.records;
        row.leaderEpoch = range.epoch;
        return row;
    }

    private void delivered(Place place, Id id, IdPlaces found, long nowMs, List<Row> rows) {
        List<IdPlaces.Layer> layers = found.layers();
        for (IdPlaces.Layer layer : layers) {
            Row row = new Row("delivered", place.at.topic()).from(new Row.SpanMs(nowMs, nowMs));
            row.partition = place.at.partition();
            row.group = group;
            row.session = IdHeader.hex(id.high, id.low);
            row.block = id.block;
            row.part = ++part;
            row.ids = layer.runList();
            row.records = layer == layers.get(0) ? found.count() : layer.count;
            row.firstOffset = layer.first;
            row.lastOffset = layer.last;
            rows.add(row);
        }
    }

    /** One partition while it is assigned. */
    private static final class Place {
        final TopicPartition at;
        final Long assignment;
        final double rebalances;
        final List<Range> ranges = new ArrayList<>();
        final Map<Id, IdPlaces> ids = new LinkedHashMap<>();
        boolean changed;
        private Id lastId;
        private IdPlaces lastIds;

        Place(TopicPartition at, Long assignment, double rebalances) {
            this.at = at;
            this.assignment = assignment;
            this.rebalances = rebalances;
        }

        Range last() {
            return ranges.isEmpty() ? null : ranges.get(ranges.size() - 1);
        }

        boolean note(byte[] header, long offset) {
            long high = IdHeader.read(header, 1);
            long low = IdHeader.read(header, 9);
            long seq = IdHeader.read(header, 17);
            long block = seq >> RunLists.BLOCK_BITS;
            if (seq < 0) {
                return false;
            }
            if (lastId == null || lastId.low != low || lastId.block != block
                    || lastId.high != high) {
                lastId = new Id(high, low, block);
                lastIds = ids.computeIfAbsent(lastId, i -> new IdPlaces());
            }
            return lastIds.add(seq, offset);
        }

        void forgetIds() {
            ids.clear();
            lastId = null;
        }
    }

    /** Offsets that were read without a jump. */
    private static final class Range {
        final int part;
        final long first;
        final long beganMs;
        long last;
        long records;
        Integer epoch;
        long endedMs;

        Range(int part, long first, long nowMs) {
            this.part = part;
            this.first = first;
            this.beganMs = nowMs;
        }
    }

    /** A session and a block. */
    private static final class Id {
        final long high;
        final long low;
        final long block;

        Id(long high, long low, long block) {
            this.high = high;
            this.low = low;
            this.block = block;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Id && ((Id) other).high == high && ((Id) other).low == low
                    && ((Id) other).block == block;
        }

        @Override
        public int hashCode() {
            return Long.hashCode(high * 31 + low * 17 + block);
        }
    }
}
