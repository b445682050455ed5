package io.acktrail;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;

/** What an error that a producer was told means: the same closed list as acktrail's. */
final class SendErrors {
    private static final Set<String> NOT_WRITTEN = new HashSet<>(Arrays.asList(
            "BufferExhaustedException",
            "ClusterAuthorizationException",
            "InvalidRecordException",
            "InvalidRequiredAcksException",
            "InvalidTimestampException",
            "InvalidTopicException",
            "NotEnoughReplicasException",
            "PolicyViolationException",
            "RecordBatchTooLargeException",
            "RecordTooLargeException",
            "RecordTooLargeException(client)",
            "SerializationException",
            "TimeoutException(buffer)",
            "TimeoutException(metadata)",
            "TopicAuthorizationException",
            "TransactionalIdAuthorizationException",
            "UnsupportedCompressionTypeException",
            "UnsupportedForMessageFormatException"));

    private SendErrors() {
    }

    /** A short name: {@code TimeoutException(expired)}, {@code NotEnoughReplicasException}. */
    static String name(Throwable error) {
        return name(error.getClass().getName(), error.getMessage());
    }

    static String name(String type, String message) {
        String name = type.substring(type.lastIndexOf('.') + 1);
        String said = message == null ? "" : message;
        if (name.equals("RecordTooLargeException")
                && said.contains("when serialized which is larger")) {
            return name + "(client)";
        }
        if (name.equals("TimeoutException")) {
            if (said.contains("not present in metadata after")
                    || said.contains("Failed to update metadata after")) {
                return name + "(metadata)";
            }
            if (said.contains("Failed to allocate")) {
                return name + "(buffer)";
            }
            if (said.contains("Expiring ")) {
                return name + "(expired)";
            }
        }
        return name;
    }

    /** {@code failed} where {@code name} surely means "not written". */
    static String tier(String name) {
        return NOT_WRITTEN.contains(name) ? "failed" : "indeterminate";
    }
}
