"""Credentials never reach the lake; what is no credential stays readable."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acktrail.logs.redact import HIDDEN, redact

SECRETS = [
    # name, text with S3CR3T-v4lue in it
    ("plain", "connecting with password=S3CR3T-v4lue to db"),
    ("colon", "password: S3CR3T-v4lue"),
    ("quoted", "password='S3CR3T-v4lue with blanks' next"),
    ("json", '{"user":"bob","password":"S3CR3T-v4lue","x":1}'),
    ("json in json", r'{"log":"{\"password\":\"S3CR3T-v4lue\",\"x\":1}\n"}'),
    ("camel case", "dbPassword=S3CR3T-v4lue"),
    ("java property", "ssl.keystore.password = S3CR3T-v4lue"),
    ("environment", "KAFKA_SASL_PASSWORD=S3CR3T-v4lue"),
    ("url", "GET https://bob:S3CR3T-v4lue@example.org/x failed"),
    ("url with an @", "amqp://bob:S3CR3T-v4lue@1@example.org/x failed"),
    ("bearer", "Authorization: Bearer S3CR3T-v4lue0123456789"),
    ("basic", "authorization: Basic S3CR3Tv4lueAAAAAAAA=="),
    (
        "jaas",
        "sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="bob" password="S3CR3T-v4lue";',
    ),
    ("jaas module", 'PlainLoginModule required username="bob" password="S3CR3T-v4lue";'),
    ("schema registry", "basic.auth.user.info = bob:S3CR3T-v4lue"),
    ("client secret", "client_secret=S3CR3T-v4lue&grant_type=client_credentials"),
    ("api key", "api-key: S3CR3T-v4lue"),
    ("api key header", "X-Api-Key: S3CR3T-v4lue"),
    ("access token", '"access_token" : "S3CR3T-v4lue"'),
    ("delegation token", "token=S3CR3T-v4lue,"),
    ("azure", "Endpoint=sb://x/;SharedAccessKey=S3CR3T-v4lue="),
    ("aws", "aws_secret_access_key=S3CR3T-v4lue"),
    ("command line", "java -jar x.jar --password S3CR3T-v4lue"),
    ("private key", "-----BEGIN RSA PRIVATE KEY-----\nS3CR3T-v4lue\n-----END RSA PRIVATE KEY-----"),
    ("cut private key", "-----BEGIN PRIVATE KEY-----\nS3CR3T-v4lue\nS3CR3T"),
    ("web token", "got eyJhbGciOiJIUzI1NiJ9.S3CR3Tv4lueS3CR3Tv4lue.S3CR3Tv4lue back"),
]
KEPT = [
    "\tssl.key.password = null\n\tsasl.jaas.config = [hidden]\n\tssl.keystore.password = [hidden]",
    "\tdelegation.token.max.lifetime.ms = 604800000",
    "\tsasl.oauthbearer.token.endpoint.url = null",
    "\tssl.keystore.type = JKS\n\tkey.serializer = class org.apache.kafka.x.StringSerializer",
    "[Producer clientId=a] Got error produce response with correlation id 7 on topic-partition "
    "my-topic-0, retrying (2147483646 attempts left). Error: REQUEST_TIMED_OUT",
    "Exception thrown when sending a message with key='null' and payload='{1, 2}' to topic a:",
    "Connection to node -1 (localhost/127.0.0.1:9092) could not be established.",
    "http://broker-1:7071/metrics answered",
    "Basic checks are done",
]


@pytest.mark.parametrize("text", [t for _, t in SECRETS], ids=[n for n, _ in SECRETS])
def test_a_credential_is_hidden(text):
    shown = redact(text)
    assert "S3CR3T" not in shown
    assert HIDDEN in shown


@pytest.mark.parametrize("text", KEPT)
def test_what_is_no_credential_stays(text):
    assert redact(text) == text


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=400))
def test_any_text_is_read_and_redacting_twice_changes_nothing(text):
    assert redact(redact(text)) == redact(text)


@pytest.mark.parametrize(
    "text",
    ["password=" * 8_000, "://a:" * 13_000, "token" * 13_000, "eyJ" * 20_000, 'secret="' * 8_000],
    ids=lambda t: t[:9],
)
def test_no_text_takes_long(text):
    began = time.process_time()
    redact(text)
    assert time.process_time() - began < 2.0
