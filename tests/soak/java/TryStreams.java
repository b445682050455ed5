import java.io.FileReader;
import java.io.Reader;
import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.KeyValueMapper;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.Stores;

/** Counts values by a new key: a repartition topic, a changelog, and an output topic. */
public final class TryStreams {
    private TryStreams() {
    }

    /** Settings, input topic, output topic, seconds to run. */
    public static void main(String[] words) throws Exception {
        Properties settings = new Properties();
        try (Reader file = new FileReader(words[0])) {
            settings.load(file);
        }
        settings.put("default.key.serde", Serdes.StringSerde.class.getName());
        settings.put("default.value.serde", Serdes.StringSerde.class.getName());
        StreamsBuilder builder = new StreamsBuilder();
        KeyValueMapper<String, String, String> byLength = (key, value) -> "k" + value.length();
        builder.<String, String>stream(words[1]).groupBy(byLength)
                .count(Materialized.as(Stores.inMemoryKeyValueStore("counts")))
                .toStream().to(words[2], Produced.with(Serdes.String(), Serdes.Long()));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.start();
        Thread.sleep(1000L * Long.parseLong(words[3]));
        streams.close(Duration.ofSeconds(20));
        System.out.println("done " + streams.state());
    }
}
