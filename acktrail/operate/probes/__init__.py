"""Probes of `acktrail doctor`: each asks one thing for something real and returns rows.

`run_probes` runs them side by side with one time limit. Kafka is asked in a process of its own,
since a crash of librdkafka would take the whole command along.
"""
