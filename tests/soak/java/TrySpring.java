import io.acktrail.Audit;
import java.io.FileReader;
import java.io.Reader;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.listener.ConcurrentMessageListenerContainer;
import org.springframework.kafka.listener.ContainerProperties;
import org.springframework.kafka.listener.MessageListener;

/** A template that sends, plainly or in transactions, and a listener that reads it back. */
public final class TrySpring {
    private TrySpring() {
    }

    /** Settings of the producer, of the consumer, topic, messages, interceptor or wrapper. */
    public static void main(String[] words) throws Exception {
        int code = 1;
        try {
            run(words);
            code = 0;
        } catch (Exception error) {
            error.printStackTrace();
        }
        System.exit(code);  // Spring's threads would keep the process
    }

    private static void run(String[] words) throws Exception {
        String topic = words[2];
        int messages = Integer.parseInt(words[3]);
        DefaultKafkaProducerFactory<String, String> producers = new DefaultKafkaProducerFactory<>(
                settings(words[0]), new StringSerializer(), new StringSerializer());
        boolean wrapped = words[4].equals("wrapper");
        if (wrapped) {
            producers.addPostProcessor(producer -> Audit.wrap(producer));
            producers.setTransactionIdPrefix("spring-" + topic);
        }
        CountDownLatch left = new CountDownLatch(messages);
        ContainerProperties listening = new ContainerProperties(topic);
        listening.setMessageListener((MessageListener<String, String>)
                (ConsumerRecord<String, String> record) -> left.countDown());
        ConcurrentMessageListenerContainer<String, String> container =
                new ConcurrentMessageListenerContainer<>(new DefaultKafkaConsumerFactory<>(
                        settings(words[1]), new StringDeserializer(), new StringDeserializer()),
                        listening);
        container.start();
        KafkaTemplate<String, String> template = new KafkaTemplate<>(producers);
        for (int n = 0; n < messages; n++) {
            String value = "value " + n;
            if (wrapped) {
                template.executeInTransaction(each -> each.send(topic, value));
            } else {
                template.send(topic, value);
            }
        }
        if (!wrapped) {
            template.flush();
        }
        boolean all = left.await(60, TimeUnit.SECONDS);
        container.stop();
        producers.destroy();
        System.out.println(all ? "done" : "only " + (messages - left.getCount()));
    }

    private static Map<String, Object> settings(String file) throws Exception {
        Properties read = new Properties();
        try (Reader from = new FileReader(file)) {
            read.load(from);
        }
        Map<String, Object> found = new HashMap<>();
        read.forEach((name, value) -> found.put((String) name, value));
        return found;
    }
}
