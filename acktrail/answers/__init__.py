"""Answers read from the lake by delta-rs: no JVM, in seconds."""
