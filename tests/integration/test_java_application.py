"""The settings that the page gives for plain Java applications, against a real cluster."""

from __future__ import annotations

from acktrail.contracts.vocabulary import Tier
from tests.integration import java_client as kit
from tests.integration.java_page import block


def test_the_settings_of_the_page_audit_a_producer_and_a_consumer(nodes):
    shop, billing = block("producer", nodes.direct), block("consumer", nodes.direct)
    reports = "java-page-reports"
    assert shop["acktrail.topic"] == billing["acktrail.topic"] == "acktrail-reports"
    quick = {"acktrail.topic": reports, "acktrail.interval.ms": "300"}
    kit.create_topics(nodes.direct, "java-page", reports)
    told = kit.run_producer(kit.NEWEST, shop | quick, "send:java-page:100", "wait:30", "close")
    read = kit.run_consumer(
        *(kit.NEWEST, billing | quick, "java-page"),
        *("subscribe", "poll:100", "commit", "close"),
    )
    assert len(told.acks) == len(read) == 100
    (books,) = kit.books_of(nodes.direct, reports, "java-page").values()
    assert books.acked == told.acks
    rows = kit.reads_of(nodes.direct, reports, "billing")
    assert sum(r.records for r in rows if r.tier is Tier.DELIVERED) == 100
