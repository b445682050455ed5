"""Why an object store cannot be used, from the errors of delta-rs, Arrow and Spark's S3A.

A store that does not answer, or refuses us, says nothing about the tables in it: such an error is
either worth another try (SourceUnavailable, exit 75) or something to set right (LakeInaccessible,
exit 2), and never damage.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from acktrail.errors import AcktrailError, LakeInaccessible, SourceUnavailable

_LONGEST = 300


@dataclass(frozen=True)
class _Rule:
    """What one kind of error means; the first that fits wins."""

    kind: str
    sign: str
    """Case-sensitive expression over the error's text, on one line."""
    what: str
    advice: str
    transient: bool = False


_AGAIN = "Nothing was lost; the next try may succeed."
_RULES = (
    _Rule(
        "no credentials",
        r"latest/(?:api/token|meta-data)|NoAuthWithAWSException|NoAwsCredentials"
        r"|Unable to load credentials|credential provider was not enabled",
        "no credentials were found",
        "Give them by AWS_* variables, a role, `lake.storage_options` or "
        "`lake.storage_option_files`; see docs/stores.md.",
    ),
    _Rule(
        "clock",
        r"\bRequestTimeTooSkewed\b|\bREQUEST_TIME_TOO_SKEWED\b|\bRequestExpired\b",
        "the clock of this machine differs too much from the store's",
        "Set the clock (`timedatectl`, NTP).",
    ),
    _Rule(
        "expired token",
        r"\bExpiredToken\b|\bExpiredTokenException\b|\bEXPIRED_TOKEN\b|\bTokenRefreshRequired\b",
        "the session token has expired",
        "Give new temporary credentials, or use a role, which renews them.",
    ),
    _Rule(
        "invalid token",
        r"\bInvalidToken\b|\bINVALID_CLIENT_TOKEN_ID\b",
        "the store does not know the session token",
        "Check session_token (AWS_SESSION_TOKEN): it belongs to its key, and to no other.",
    ),
    _Rule(
        "wrong key",
        r"\bInvalidAccessKeyId\b|\bINVALID_ACCESS_KEY_ID\b",
        "the store does not know the access key",
        "Check access_key_id (AWS_ACCESS_KEY_ID) and the endpoint.",
    ),
    _Rule(
        "wrong secret",
        r"\bSignatureDoesNotMatch\b|\bSIGNATURE_DOES_NOT_MATCH\b",
        "the secret key does not fit the access key",
        "Check secret_access_key (AWS_SECRET_ACCESS_KEY).",
    ),
    _Rule(
        "no bucket",
        r"\bNoSuchBucket\b|\bNO_SUCH_BUCKET\b|\bUnknownStoreException\b",
        "there is no such bucket",
        "Check --lake (`lake.uri`) and the endpoint, or create the bucket.",
    ),
    _Rule(
        "wrong region",
        r"\bAuthorizationHeaderMalformed\b|\bPermanentRedirect\b|\bIllegalLocationConstraint\w*"
        r"|incorrectly configured region|\bAWSRedirectException\b"
        r"|(?:HTTP status|Status Code:) 301\b",
        "the bucket is in another region",
        "Set region (AWS_REGION) to the bucket's, or the endpoint of the store.",
    ),
    _Rule(
        "throttled",
        r"\bSlowDown\b|\bSLOW_DOWN\b|\bThrottl\w+|\bTHROTTLING\b|\bTooManyRequests\b"
        r"|\bAWSServiceThrottledException\b|(?:HTTP status|Status Code:|code:) 429\b",
        "the store asks for fewer requests",
        f"{_AGAIN} Flush less often (`agent.flush_s`) if this goes on.",
        transient=True,
    ),
    _Rule(
        "slow upload",
        r"\bRequestTimeout\b|\bREQUEST_TIMEOUT\b",
        "the store waited too long for a request",
        f"{_AGAIN} Check the network.",
        transient=True,
    ),
    _Rule(
        "denied",
        r"\bAccessDenied\w*\b|\bACCESS_DENIED\b|\bAllAccessDisabled\b"
        r"|(?:HTTP status|Status Code:|code:) 40[13]\b",
        "the store refuses access",
        "Check the credentials and their rights: s3:ListBucket on the bucket; s3:GetObject, "
        "s3:PutObject and s3:DeleteObject below the lake.",
    ),
    _Rule(
        "bad request",
        r"(?:HTTP status|Status Code:|code:) 400\b",
        "the store refuses the request",
        "An expired token and a wrong region are the usual reasons: `acktrail doctor` has more.",
    ),
    _Rule(
        "server error",
        r"\bInternalError\b|\bINTERNAL_FAILURE\b|\bServiceUnavailable\b|\bSERVICE_UNAVAILABLE\b"
        r"|\bAWSStatus500Exception\b|(?:HTTP status|Status Code:|code:) 5\d\d\b",
        "the store reports an internal error",
        _AGAIN,
        transient=True,
    ),
    _Rule(
        "certificate",
        r"invalid peer certificate|curlCode: 60\b|PKIX path|CertificateException"
        r"|SSLPeerUnverifiedException",
        "the certificate of the store is not trusted",
        "Name the CA's file in the variable SSL_CERT_FILE (for Spark: in Java's trust store), or "
        "correct the host in the endpoint.",
    ),
    _Rule(
        "not TLS",
        r"corrupt message of type InvalidContentType|wrong version number"
        r"|Unsupported or unrecognized SSL message",
        "the endpoint does not use TLS",
        "Write http:// instead of https:// in the endpoint, or the port of TLS.",
    ),
    _Rule(
        "name",
        r"dns error|curlCode: 6\b|UnknownHostException|Could not resolve host",
        "the name of the store's host cannot be resolved",
        f"{_AGAIN} Check DNS, the endpoint and the region.",
        transient=True,
    ),
    _Rule(
        "refused",
        r"Connection refused|curlCode: 7\b",
        "the store did not answer: nothing listens at the endpoint",
        f"{_AGAIN} Check the endpoint and the store.",
        transient=True,
    ),
    _Rule(
        "slow",
        r"timed out|curlCode: 28\b|[Tt]imeout(?! for connection pool)",
        "the store did not answer in time",
        f"{_AGAIN} Check the network; timeout and retry_timeout are options.",
        transient=True,
    ),
    _Rule(
        "cut",
        r"[Cc]onnection (?:reset|closed|aborted)|curlCode: \d+|NETWORK_CONNECTION"
        r"|error sending request|error decoding response body|[Bb]roken pipe|IncompleteMessage"
        r"|SdkClientException",
        "the store did not answer: the connection was cut",
        _AGAIN,
        transient=True,
    ),
    _Rule(
        "unknown",
        r"Generic (?:S3|GCS|MicrosoftAzure) error|AWS Error|S3Exception",
        "the store did not answer as it should",
        _AGAIN,
        transient=True,
    ),
)
KINDS = tuple(rule.kind for rule in _RULES)


def error_kind(text: str) -> str | None:
    """The kind of a store's error, one of KINDS; None for an error of another sort."""
    found = _rule(_one_line(text))
    return None if found is None else found.kind


def store_error(place: str, error: object) -> AcktrailError | None:
    """Our error where the store at *place* refused or did not answer; None for any other."""
    text = _one_line(str(error))
    rule = _rule(text)
    if rule is None:
        return None
    said = f"{place}: {rule.what}. {rule.advice} ({_reason(text)})"
    return SourceUnavailable(said) if rule.transient else LakeInaccessible(said)


def uncaught_store_error(text: str) -> AcktrailError | None:
    """As `store_error`, for the text of any error of Spark, Arrow or delta-rs.

    None where a store is not its cause.
    """
    if not re.search(r"hadoop\.fs\.s3a|awssdk|AWS Error|Generic S3 error", text):
        return None
    return store_error("The lake's store", text.partition("\n\tat ")[0])


def _rule(text: str) -> _Rule | None:
    return next((rule for rule in _RULES if re.search(rule.sign, text)), None)


def _one_line(text: str) -> str:
    """Without colours and branches: delta-rs draws the causes of an error as a tree."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    return re.sub(r"\s+", " ", re.sub(r"\s*\n\s*↳ ", ": ", plain)).strip()


def _reason(text: str) -> str:
    """The store's own words where they are there, else the end of the text: the root cause."""
    found = re.search(r"<Code>(\w+)</Code>\s*<Message>([^<]*)</Message>", text)
    if found:
        return f"{found[1]}: {found[2]}"[:_LONGEST]
    return text if len(text) <= _LONGEST else f"… {text[-_LONGEST:]}"
