package io.acktrail;

import java.io.FileReader;
import java.io.Reader;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collections;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * An ordinary consumer for tests: a properties file, a topic, then steps. It prints {@code read
 * PARTITION OFFSET} for each record.
 *
 * <p>Steps: subscribe, assign:PARTITION, poll:COUNT (until so many more records have come, a minute
 * at most), seek:PARTITION:OFFSET, commit, sleep:MS, close, halt.
 */
public final class TryConsumer {
    private TryConsumer() {
    }

    /** Does the steps. */
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        try (Reader file = new FileReader(arguments[0])) {
            settings.load(file);
        }
        StringBuilder said = new StringBuilder();
        KafkaConsumer<String, String> consumer = new KafkaConsumer<>(
                settings, new StringDeserializer(), new StringDeserializer());
        String topic = arguments[1];
        for (String step : Arrays.asList(arguments).subList(2, arguments.length)) {
            String[] words = step.split(":");
            switch (words[0]) {
                case "subscribe":
                    consumer.subscribe(Collections.singletonList(topic));
                    break;
                case "assign":
                    consumer.assign(Collections.singletonList(
                            new TopicPartition(topic, Integer.parseInt(words[1]))));
                    break;
                case "poll":
                    int left = Integer.parseInt(words[1]);
                    long ends = System.nanoTime() + 60_000_000_000L;
                    while (left > 0 && System.nanoTime() < ends) {
                        for (ConsumerRecord<String, String> one
                                : consumer.poll(Duration.ofMillis(200))) {
                            said.append("read ").append(one.partition()).append(' ')
                                    .append(one.offset()).append('\n');
                            left--;
                        }
                    }
                    break;
                case "seek":
                    consumer.seek(new TopicPartition(topic, Integer.parseInt(words[1])),
                            Long.parseLong(words[2]));
                    break;
                case "commit":
                    consumer.commitSync();
                    break;
                case "sleep":
                    Thread.sleep(Long.parseLong(words[1]));
                    break;
                case "close":
                    consumer.close();
                    break;
                case "halt":
                    System.out.print(said);
                    System.out.flush();
                    Runtime.getRuntime().halt(9);
                    break;
                default:
                    throw new IllegalArgumentException(step);
            }
        }
        System.out.print(said);
        System.out.println("done");
        System.out.flush();
    }
}
