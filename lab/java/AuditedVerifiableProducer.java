import io.acktrail.Audit;
import java.io.FileReader;
import java.io.PrintStream;
import java.io.Reader;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * As Kafka's VerifiableProducer, with its arguments and its output, but its producer is wrapped by
 * {@code Audit.wrap}: the original makes its own KafkaProducer, which cannot be reached.
 */
public final class AuditedVerifiableProducer {
    private final PrintStream out = System.out;
    private final AtomicLong acked = new AtomicLong();
    private volatile boolean stopping;
    private long sent;

    private AuditedVerifiableProducer() {
    }

    /** Sends until all is sent or SIGTERM comes. */
    public static void main(String[] words) throws Exception {
        Map<String, String> given = new HashMap<>();
        for (int at = 0; at + 1 < words.length; at += 2) {
            given.put(words[at], words[at + 1]);
        }
        new AuditedVerifiableProducer().run(given);
    }

    private void run(Map<String, String> given) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", given.get("--bootstrap-server"));
        settings.put("acks", given.get("--acks"));
        String file = given.getOrDefault("--command-config", given.get("--producer.config"));
        try (Reader from = new FileReader(file)) {
            settings.load(from);
        }
        settings.put("key.serializer", StringSerializer.class.getName());
        settings.put("value.serializer", StringSerializer.class.getName());
        Producer<String, String> producer = Audit.wrap(new KafkaProducer<>(settings));
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            stopping = true;
            try {
                main.join();
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
        }));
        say("startup_complete", "");
        send(producer, given);
        producer.close();
        say("shutdown_complete", "");
        say("tool_data", String.format(",\"sent\":%d,\"acked\":%d", sent, acked.get()));
        out.flush();
    }

    private void send(Producer<String, String> producer, Map<String, String> given)
            throws InterruptedException {
        long most = Long.parseLong(given.get("--max-messages"));
        double perSecond = Double.parseDouble(given.get("--throughput"));
        int keys = Integer.parseInt(given.getOrDefault("--repeating-keys", "0"));
        String prefix = given.get("--value-prefix");
        String topic = given.get("--topic");
        long began = System.nanoTime();
        for (long n = 0; n < most && !stopping; n++) {
            String key = keys > 0 ? Long.toString(n % keys) : null;
            String value = prefix + "." + n;
            sent++;
            try {
                producer.send(new ProducerRecord<>(topic, key, value), (metadata, error) ->
                        told(topic, key, value, metadata, error));
            } catch (RuntimeException error) {
                told(topic, key, value, null, error);
            }
            long ahead = (long) ((n + 1) / perSecond * 1e9) - (System.nanoTime() - began);
            if (perSecond > 0 && ahead > 1_000_000) {
                Thread.sleep(ahead / 1_000_000);
            }
        }
    }

    private void told(
            String topic, String key, String value, RecordMetadata metadata, Exception error) {
        String record = String.format(",\"key\":%s,\"value\":%s,\"topic\":%s",
                quoted(key), quoted(value), quoted(topic));
        if (error == null) {
            acked.incrementAndGet();
            say("producer_send_success", record + String.format(",\"partition\":%d,\"offset\":%d",
                    metadata.partition(), metadata.offset()));
        } else {
            say("producer_send_error", record + String.format(",\"exception\":%s,\"message\":%s",
                    quoted(error.getClass().toString()), quoted(error.getMessage())));
        }
    }

    private static String quoted(String text) {
        if (text == null) {
            return "null";
        }
        StringBuilder made = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') {
                made.append('\\').append(c);
            } else if (c < ' ') {
                made.append(' ');
            } else {
                made.append(c);
            }
        }
        return made.append('"').toString();
    }

    private synchronized void say(String name, String more) {
        out.println("{\"timestamp\":" + System.currentTimeMillis() + ",\"name\":\"" + name + "\""
                + more + "}");
    }
}
