"""The request by which a store is asked whether it creates an object twice."""

from __future__ import annotations

from datetime import UTC, datetime

from acktrail.lake.s3_options import S3Options
from acktrail.lake.safe_commits import require_safe_commits, signed
from acktrail.lake.store import Store


def test_the_signature_is_that_of_botocore():
    options = S3Options("AKIA", "hunter2", "t0k3n", "eu-central-1", "http://minio:9000")
    path, at = "/bucket/a%20b/.acktrail-probe-1", datetime(2026, 1, 31, 10, tzinfo=UTC)
    headers = signed(options, "PUT", "minio:9000", path, {"if-none-match": "*"}, at)
    # botocore 1.44.3, S3SigV4Auth, for the same request at the same moment.
    assert headers["authorization"] == (
        "AWS4-HMAC-SHA256 Credential=AKIA/20260131/eu-central-1/s3/aws4_request, "
        "SignedHeaders=host;if-none-match;x-amz-content-sha256;x-amz-date;x-amz-security-token, "
        "Signature=a4f8eb95300f291e11011efca8117c06731ff6fb3c0c99deec03f8942ccf0675"
    )


def test_who_is_known_to_be_safe_is_not_asked(tmp_path, monkeypatch):
    for variable in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ACCESS_KEY_ID"):
        monkeypatch.delenv(variable, raising=False)
    assert not require_safe_commits(Store(str(tmp_path)))
    assert not require_safe_commits(Store("s3://bucket/lake", {"region": "eu-central-1"}))
    assert not require_safe_commits(Store("gs://bucket/lake"))
    role = {"endpoint_url": "http://127.0.0.1:9"}
    assert not require_safe_commits(Store("s3://bucket/lake", role)), "a role's keys are unknown"
