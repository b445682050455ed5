package io.acktrail;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collections;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * What the audit costs: CPU of the process and of the application's thread, and bytes allocated, per
 * message. Arguments: produce or consume, bare, interceptor or wrapper, servers, messages, messages
 * per second (0: as fast as it goes), topic. Prints one line of name=value.
 */
public final class BenchClients {
    private static final OperatingSystemMXBean SYSTEM =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private static final com.sun.management.ThreadMXBean THREADS =
            (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();

    private BenchClients() {
    }

    /** Measures once. */
    public static void main(String[] words) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", words[2]);
        settings.put("acktrail.topic", "acktrail-reports");
        settings.put("enable.idempotence", "false");
        settings.put("batch.size", "65536");
        settings.put("linger.ms", "5");
        int messages = Integer.parseInt(words[3]);
        if (words[0].equals("produce")) {
            produce(settings, words[1], messages, Integer.parseInt(words[4]), words[5]);
        } else {
            consume(settings, words[1], messages, words[5]);
        }
    }

    private static void produce(
            Properties settings, String how, int messages, int rate, String topic)
            throws InterruptedException {
        if (how.equals("interceptor")) {
            settings.put("interceptor.classes", AuditProducerInterceptor.class.getName());
        }
        KafkaProducer<byte[], byte[]> made = new KafkaProducer<>(
                settings, new ByteArraySerializer(), new ByteArraySerializer());
        Producer<byte[], byte[]> producer = how.equals("wrapper") ? Audit.wrap(made) : made;
        send(producer, messages, rate, topic);  // warm
        Meter meter = new Meter();
        send(producer, messages, rate, topic);
        meter.stop(messages);
        producer.close();
    }

    private static void send(
            Producer<byte[], byte[]> producer, int messages, int rate, String topic)
            throws InterruptedException {
        byte[] value = new byte[200];
        byte[][] keys = new byte[1000][];
        for (int i = 0; i < keys.length; i++) {
            keys[i] = Integer.toString(i).getBytes();
        }
        AtomicLong answered = new AtomicLong();
        long began = System.nanoTime();
        for (int n = 0; n < messages; n++) {
            producer.send(new ProducerRecord<>(topic, keys[n % keys.length], value),
                    (metadata, error) -> answered.incrementAndGet());
            if (rate > 0 && n % 100 == 0) {
                long ahead = began + n * 1_000_000_000L / rate - System.nanoTime();
                if (ahead > 1_000_000) {
                    Thread.sleep(ahead / 1_000_000);
                }
            }
        }
        producer.flush();
        if (answered.get() != messages) {
            throw new IllegalStateException(answered + " answers to " + messages + " messages");
        }
    }

    /** Reads the same partition again and again: what is there was produced with headers. */
    private static void consume(
            Properties settings, String how, int messages, String topic) {
        settings.put("group.id", "bench");
        settings.put("enable.auto.commit", "false");
        if (!how.equals("bare")) {
            settings.put("interceptor.classes", AuditConsumerInterceptor.class.getName());
        }
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
                settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        TopicPartition place = new TopicPartition(topic, 0);
        consumer.assign(Collections.singletonList(place));
        read(consumer, place, messages);
        Meter meter = new Meter();
        read(consumer, place, messages);
        meter.stop(messages);
        consumer.close();
    }

    private static void read(
            KafkaConsumer<byte[], byte[]> consumer, TopicPartition place, int messages) {
        long end = consumer.endOffsets(Collections.singleton(place)).get(place);
        int left = messages;
        while (left > 0) {
            consumer.seekToBeginning(Collections.singleton(place));
            while (left > 0 && consumer.position(place) < end) {
                left -= consumer.poll(Duration.ofMillis(500)).count();
            }
        }
    }

    /** From its making to its stop. */
    private static final class Meter {
        private final long cpu = SYSTEM.getProcessCpuTime();
        private final long thread = THREADS.getCurrentThreadCpuTime();
        private final long allocated = allocated();
        private final long[] collections = collections();
        private final long began = System.nanoTime();

        void stop(int messages) {
            long wall = System.nanoTime() - began;
            long[] since = collections();
            System.out.println(String.format(
                    "process_ns=%d thread_ns=%d bytes=%d gc_count=%d gc_ms=%d per_second=%d",
                    (SYSTEM.getProcessCpuTime() - cpu) / messages,
                    (THREADS.getCurrentThreadCpuTime() - thread) / messages,
                    (allocated() - allocated) / messages,
                    since[0] - collections[0], since[1] - collections[1],
                    messages * 1_000_000_000L / wall));
        }

        private static long allocated() {
            return Arrays.stream(THREADS.getThreadAllocatedBytes(THREADS.getAllThreadIds())).sum();
        }

        private static long[] collections() {
            long[] found = new long[2];
            for (GarbageCollectorMXBean one : ManagementFactory.getGarbageCollectorMXBeans()) {
                found[0] += one.getCollectionCount();
                found[1] += one.getCollectionTime();
            }
            return found;
        }
    }
}
