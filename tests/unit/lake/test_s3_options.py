"""Options of S3: one name each, rendered for three engines; unknown and unsafe ones are refused."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acktrail.errors import ConfigError
from acktrail.lake.s3_options import S3Options, s3_options, without_secrets
from acktrail.lake.store import Store

KEYS = {"access_key_id": "AKIA", "secret_access_key": "hunter2"}
MINIO = {**KEYS, "endpoint_url": "http://minio:9000"}

SPELLINGS = {
    "delta-rs": {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "hunter2",
                 "AWS_ENDPOINT_URL": "http://minio:9000", "AWS_ALLOW_HTTP": "true"},
    "lower case": {"aws_access_key_id": "AKIA", "aws_secret_access_key": "hunter2",
                   "aws_endpoint": "http://minio:9000"},
    "pyarrow": {"access_key": "AKIA", "secret_key": "hunter2",
                "endpoint_override": "http://minio:9000"},
    "hadoop": {"access-key": "AKIA", "secret-key": "hunter2", "endpoint": "http://minio:9000",
               "path.style.access": "true"},
}  # fmt: skip


@pytest.mark.parametrize("options", SPELLINGS.values(), ids=SPELLINGS)
def test_the_spellings_of_all_engines_say_the_same(options):
    assert s3_options(options, {}) == s3_options(MINIO, {})


def test_a_server_that_is_not_aws():
    options = s3_options({**MINIO, "session_token": "t0k3n"}, {})
    assert (options.region, options.path_style) == ("us-east-1", True)
    assert options.delta() == {
        "aws_access_key_id": "AKIA",
        "aws_secret_access_key": "hunter2",
        "aws_session_token": "t0k3n",
        "aws_region": "us-east-1",
        "aws_endpoint_url": "http://minio:9000",
        "allow_http": "true",
        "connect_timeout": "5s",
        "timeout": "15s",
        "max_retries": "4",
        "retry_timeout": "30s",
    }
    arrow = options.arrow()
    assert (arrow["access_key"], arrow["secret_key"]) == ("AKIA", "hunter2")
    assert (arrow["endpoint_override"], arrow["region"]) == ("http://minio:9000", "us-east-1")
    spark = options.spark()
    assert spark["spark.hadoop.fs.s3a.endpoint"] == "http://minio:9000"
    assert spark["spark.hadoop.fs.s3a.endpoint.region"] == "us-east-1"
    assert spark["spark.hadoop.fs.s3a.path.style.access"] == "true"
    assert options.environment() == {
        "AWS_ACCESS_KEY_ID": "AKIA",
        "AWS_SECRET_ACCESS_KEY": "hunter2",
        "AWS_SESSION_TOKEN": "t0k3n",
    }


def test_a_role_of_aws_needs_no_option_but_the_region():
    options = s3_options({"region": "eu-central-1"}, {})
    assert not {key for key in options.delta() if "key" in key or "token" in key}
    assert "access_key" not in options.arrow()
    assert options.spark()["spark.hadoop.fs.s3a.path.style.access"] == "false"
    assert "spark.hadoop.fs.s3a.endpoint" not in options.spark()
    assert options.environment() == {}


def test_the_environment_says_what_is_not_given():
    variables = {"AWS_REGION": "eu-west-1", "AWS_ENDPOINT_URL": "https://s3.example.com"}
    options = s3_options({}, variables)
    assert (options.region, options.endpoint_url) == ("eu-west-1", "https://s3.example.com")
    chosen = s3_options({"region": "us-east-2"}, {**variables, "AWS_ENDPOINT_URL_S3": "https://a"})
    assert (chosen.region, chosen.endpoint_url) == ("us-east-2", "https://a")


REFUSED = [
    ({"acess_key_id": "x"}, "there is no such option of S3. Did you mean access_key_id"),
    ({"nonsense": "x"}, "Known are access_key_id"),
    ({"aws_conditional_put": "disabled"}, "overwrite each other's commits. Remove it"),
    ({"conditional_put": "etag"}, "Remove it"),
    ({"AWS_S3_ALLOW_UNSAFE_RENAME": "true"}, "Remove it"),
    ({"AWS_S3_LOCKING_PROVIDER": "dynamodb"}, "Remove it"),
    ({"aws_copy_if_not_exists": "multipart"}, "Remove it"),
    ({"aws_role_arn": "arn:x"}, "AWS_ROLE_ARN with AWS_WEB_IDENTITY_TOKEN_FILE"),
    ({"allow_invalid_certificates": "true"}, "SSL_CERT_FILE"),
    ({"aws_server_side_encryption": "aws:kms"}, "default encryption of the bucket"),
    ({"region": "a", "aws_region": "b"}, "it says the same as `region`"),
    ({"access_key_id": "x"}, "belong together"),
    ({"session_token": "x"}, "needs its access_key_id"),
    ({"endpoint_url": "minio:9000"}, "is not an address"),
    ({"endpoint_url": "https://minio/bucket"}, "without the bucket"),
    ({"endpoint_url": "http://minio", "allow_http": "false"}, "the endpoint is http://minio"),
    ({**KEYS, "anonymous": "true"}, "keys are given"),
    ({"path_style": "true", "virtual_hosted_style": "true"}, "says the opposite"),
    ({"allow_http": "perhaps"}, "write true or false"),
    ({"max_retries": "-1"}, "write a whole number"),
    ({"timeout": "0"}, "a number of seconds above 0"),
]


@pytest.mark.parametrize(("options", "said"), REFUSED, ids=[said for _, said in REFUSED])
def test_what_is_wrong_is_refused_and_said(options, said):
    with pytest.raises(ConfigError, match=said.replace("(", r"\(")):
        s3_options(options, {})


@pytest.mark.parametrize(
    "variable", ["AWS_CONDITIONAL_PUT", "AWS_S3_ALLOW_UNSAFE_RENAME", "AWS_S3_LOCKING_PROVIDER"]
)
def test_a_variable_that_makes_commits_unsafe_is_refused(variable):
    with pytest.raises(ConfigError, match=variable):
        s3_options(MINIO, {variable: "x"})


_SECRET = st.text("abcdefghijkSECRET0123456789/+", min_size=12)


@given(_SECRET, _SECRET, st.sampled_from(list(SPELLINGS.values())))
def test_no_secret_is_printed_pickled_or_given_to_a_command_line(secret, token, spelt):
    options = {key: secret if "secret" in key.lower() else value for key, value in spelt.items()}
    options["aws_session_token"] = token
    read = s3_options(options, {})
    store = Store("s3://bucket/lake", options)
    shown = f"{read!r} {store!r} {read.spark()} {without_secrets(options)}"
    shown += repr(dict(store.without_secrets().options))
    assert secret not in shown
    assert token not in shown
    assert store.without_secrets().s3.endpoint_url == read.endpoint_url


_NAME = st.sampled_from(["region", "AWS_TIMEOUT", "max_retries", "endpoint_url", "path_style", "x"])
_VALUE = st.one_of(
    st.text(max_size=12), st.sampled_from(["true", "0", "1", "5s", "1m", "http://a"])
)


@given(st.dictionaries(_NAME, _VALUE, max_size=4))
def test_any_options_are_taken_or_explained(options):
    with contextlib.suppress(ConfigError):
        assert isinstance(s3_options(options, {}), S3Options)


def test_options_of_other_stores_are_passed_on():
    options = {"google_service_account": "/run/key.json"}
    assert Store("gs://bucket/lake", options).delta_options == options
