"""Refuse a store on which two writers could overwrite each other's commits.

A commit is safe where the store creates an object only if there is none of that name: a PUT with
`If-None-Match: *`, which delta-rs sends for every commit. AWS does so; some other servers ignore
the condition and answer as if all were well. So before its first commit to a lake at an endpoint a
process creates one object twice: the second time must be refused.

No engine of ours sends such a request without looking for the object first, so it is signed here.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from urllib.parse import quote, urlsplit

from acktrail.errors import LakeInaccessible, SourceUnavailable
from acktrail.lake.s3_options import S3Options
from acktrail.lake.store import Store
from acktrail.lake.store_errors import store_error

PROBE = ".acktrail-probe-"
"""How the object's name begins. One that a killed process has left can be removed."""
_REFUSED = (409, 412)
_NOT_IMPLEMENTED = 501


def require_safe_commits(lake: Store) -> bool:
    """LakeInaccessible where the store of *lake* creates an object twice; asked once per process.

    True where the store was asked. It is not where it is known to be safe (a file system, AWS and
    other clouds), nor where the credentials are a role's, which only the engines know.
    """
    if not lake.is_s3:
        return False
    options = _with_keys(lake.s3)
    if not options.endpoint_url or not options.access_key_id:
        return False
    _probe(lake.path, options)
    return True


def _with_keys(options: S3Options) -> S3Options:
    """The keys that the engines take from the environment, where none are given."""
    if options.access_key_id or options.anonymous:
        return options
    return replace(
        options,
        access_key_id=os.environ.get("AWS_ACCESS_KEY_ID", ""),
        secret_access_key=os.environ.get("AWS_SECRET_ACCESS_KEY", ""),
        session_token=os.environ.get("AWS_SESSION_TOKEN", ""),
    )


@lru_cache(maxsize=8)
def _probe(lake: str, options: S3Options) -> None:
    from http.client import HTTPException  # an agent on a disk does not load it

    bucket, _, prefix = lake.partition("://")[2].partition("/")
    key = "/".join(part for part in (prefix, f"{PROBE}{secrets.token_hex(8)}") if part)
    condition = {"if-none-match": "*"}
    try:
        status, text = _request(options, "PUT", bucket, key, condition)
        if status < 300:
            status, text = _request(options, "PUT", bucket, key, condition)
            _request(options, "DELETE", bucket, key)
    except (OSError, HTTPException) as error:
        unanswered = SourceUnavailable(f"{lake}: the store did not answer: {error}")
        raise store_error(lake, error) or unanswered from error
    if status in _REFUSED:
        return
    if status < 300 or status == _NOT_IMPLEMENTED:
        raise LakeInaccessible(
            f"{lake}: the store creates an object although one of that name exists (it ignores "
            "`If-None-Match: *`). Two writers would overwrite each other's commits, so nothing is "
            "written. Use a store with conditional writes; see docs/stores.md."
        )
    said = f"HTTP status {status} {text}"
    raise store_error(lake, said) or LakeInaccessible(f"{lake} cannot be written: {said}")


def _request(
    options: S3Options, method: str, bucket: str, key: str, more: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Status and text of the store's answer to one request."""
    from http.client import HTTPConnection, HTTPSConnection

    url = urlsplit(options.endpoint_url)
    host = url.netloc if options.path_style else f"{bucket}.{url.netloc}"
    path = quote(f"/{bucket}/{key}" if options.path_style else f"/{key}")
    kind = HTTPSConnection if url.scheme == "https" else HTTPConnection
    connection = kind(host, timeout=options.timeout_s)
    try:
        headers = signed(options, method, host, path, more or {}, datetime.now(UTC))
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read(10_000).decode("utf-8", "replace")
    finally:
        connection.close()


def signed(
    options: S3Options, method: str, host: str, path: str, more: Mapping[str, str], at: datetime
) -> dict[str, str]:
    """The headers of a request without a body, signed by AWS's version 4."""
    day, time = at.strftime("%Y%m%d"), at.strftime("%Y%m%dT%H%M%SZ")
    nothing = hashlib.sha256(b"").hexdigest()
    headers = {**more, "host": host, "x-amz-content-sha256": nothing, "x-amz-date": time}
    if options.session_token:
        headers["x-amz-security-token"] = options.session_token
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    request = f"{method}\n{path}\n\n{lines}\n{names}\n{nothing}"
    scope = f"{day}/{options.region}/s3/aws4_request"
    digest = hashlib.sha256(request.encode()).hexdigest()
    key = f"AWS4{options.secret_access_key}".encode()
    text = f"AWS4-HMAC-SHA256\n{time}\n{scope}\n{digest}"
    for part in (day, options.region, "s3", "aws4_request", text):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return {
        **headers,
        "authorization": f"AWS4-HMAC-SHA256 Credential={options.access_key_id}/{scope}, "
        f"SignedHeaders={names}, Signature={key.hex()}",
    }
