package io.acktrail;

import java.io.FileReader;
import java.io.Reader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;

/**
 * An ordinary application for tests: a properties file, then steps. It prints what each callback
 * said: {@code ack N PARTITION OFFSET} or {@code error N CLASS MESSAGE}, N counting sends.
 *
 * <p>Steps: wrap, send:TOPIC:COUNT[:BYTES], keyed:TOPIC:COUNT, again:TOPIC:COUNT (one record sent
 * many times), null, init, begin, commit, abort, flush, sleep:MS, wait:SECONDS (until each send has
 * had its callback), close, close0, halt (as kill -9), exit.
 */
public final class TryProducer {
    private final StringBuffer said = new StringBuffer();
    private final java.util.concurrent.atomic.AtomicInteger answered =
            new java.util.concurrent.atomic.AtomicInteger();
    private Producer<String, String> producer;
    private int sends;

    private TryProducer() {
    }

    /** Does the steps. */
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        try (Reader file = new FileReader(arguments[0])) {
            settings.load(file);
        }
        String serializer = "org.apache.kafka.common.serialization.StringSerializer";
        settings.putIfAbsent("key.serializer", serializer);
        settings.putIfAbsent("value.serializer", serializer);
        if ("yes".equals(settings.remove("test.unreadable"))) {
            settings.put("acktrail.topic", new Object() {
                @Override
                public String toString() {
                    throw new AssertionError("a setting that cannot be read");
                }
            });
        }
        TryProducer app = new TryProducer();
        app.producer = new KafkaProducer<>(settings);
        List<String> steps = new ArrayList<>(
                Arrays.asList(arguments).subList(1, arguments.length));
        for (String step : steps) {
            app.act(step.split(":"));
        }
        System.out.print(app.said);
        System.out.println("problems " + Audit.problems());
        System.out.println("done");
        System.out.flush();
    }

    private void act(String[] step) throws Exception {
        long began = System.nanoTime();
        switch (step[0]) {
            case "wrap":
                producer = Audit.wrap(producer);
                break;
            case "send":
                for (int i = Integer.parseInt(step[2]); i > 0; i--) {
                    char[] text = new char[step.length > 3 ? Integer.parseInt(step[3]) : 10];
                    Arrays.fill(text, 'x');
                    send(new ProducerRecord<>(step[1], new String(text)));
                }
                break;
            case "keyed":
                for (int i = Integer.parseInt(step[2]); i > 0; i--) {
                    send(new ProducerRecord<>(step[1], "key" + i % 7, "value" + i));
                }
                break;
            case "again":
                ProducerRecord<String, String> record = new ProducerRecord<>(step[1], "again");
                record.headers().add("acktrail", new byte[] {1}).add("trace", new byte[] {2});
                for (int i = Integer.parseInt(step[2]); i > 0; i--) {
                    send(record);
                }
                break;
            case "init":
                producer.initTransactions();
                break;
            case "begin":
                producer.beginTransaction();
                break;
            case "commit":
                attempt(() -> producer.commitTransaction());
                break;
            case "abort":
                attempt(() -> producer.abortTransaction());
                break;
            case "flush":
                producer.flush();
                break;
            case "sleep":
                Thread.sleep(Long.parseLong(step[1]));
                break;
            case "wait":
                long ends = System.nanoTime() + Long.parseLong(step[1]) * 1_000_000_000L;
                while (answered.get() < sends && System.nanoTime() < ends) {
                    Thread.sleep(10);
                }
                break;
            case "close":
                producer.close();
                break;
            case "close0":
                producer.close(Duration.ZERO);
                break;
            case "halt":
                System.out.print(said);
                System.out.flush();
                Runtime.getRuntime().halt(9);
                break;
            default:
                throw new IllegalArgumentException(step[0]);
        }
        said.append("step " + step[0] + " " + (System.nanoTime() - began) / 1_000_000 + "\n");
    }

    private void attempt(Runnable what) {
        try {
            what.run();
        } catch (RuntimeException error) {
            said.append("refused " + error + "\n");
        }
    }

    private void send(ProducerRecord<String, String> record) {
        int number = sends++;
        try {
            producer.send(record, (metadata, error) -> said(number, metadata, error));
        } catch (RuntimeException error) {
            said(number, null, error);
        }
    }

    private void said(int number, RecordMetadata metadata, Exception error) {
        if (error == null) {
            long offset = metadata.hasOffset() ? metadata.offset() : -1;
            said.append("ack " + number + " " + metadata.partition() + " " + offset + "\n");
        } else {
            String why = String.valueOf(error.getMessage()).replace('\n', ' ');
            said.append("error " + number + " " + error.getClass().getName() + " " + why + "\n");
        }
        answered.incrementAndGet();
    }
}
