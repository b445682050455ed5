"""What sources ask a Kafka cluster, and how they reach it."""
