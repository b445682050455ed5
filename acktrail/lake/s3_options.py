"""Options of a lake on S3: read once, and rendered for delta-rs, for Arrow and for Spark.

The three engines name the same things differently. Here every option has one name, the spellings
that users know from them are accepted, and one that is unknown, or that would make commits unsafe,
is refused. Credentials that are not given are left to each engine's own chain: AWS_* variables,
shared files, web identity, container or instance role.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from acktrail.errors import ConfigError
from acktrail.nearest import did_you_mean

_SPELLINGS = {
    "access_key_id": ("access_key",),
    "secret_access_key": ("secret_key",),
    "session_token": ("token",),
    "region": ("default_region", "region_name"),
    "endpoint_url": ("endpoint", "endpoint_url_s3", "endpoint_override"),
    "path_style": ("path_style_access", "force_path_style"),
    "virtual_hosted_style_request": ("virtual_hosted_style", "force_virtual_addressing"),
    "allow_http": (),
    "anonymous": ("skip_signature",),
    "connect_timeout_s": ("connect_timeout",),
    "timeout_s": ("timeout", "request_timeout"),
    "max_retries": (),
    "retry_timeout_s": ("retry_timeout",),
}
_NAMES = {spelling: name for name, more in _SPELLINGS.items() for spelling in (name, *more)}

_UNSAFE = "Two writers could then overwrite each other's commits. Remove it"
_ROLE = (
    "Roles are not options: give the process its role by the environment (AWS_ROLE_ARN with "
    "AWS_WEB_IDENTITY_TOKEN_FILE, a container's or an instance's role, AWS_PROFILE), and leave "
    "the keys out"
)
_CERTIFICATES = (
    "Certificates are always verified. Name the file of a CA in the variable SSL_CERT_FILE"
)
_ENCRYPTION = "Set the default encryption of the bucket instead: every writer then uses it"
_REFUSED = {
    "conditional_put": _UNSAFE,
    "copy_if_not_exists": _UNSAFE,
    "locking_provider": _UNSAFE,
    "allow_unsafe_rename": _UNSAFE,
    "role_arn": _ROLE,
    "iam_role_arn": _ROLE,
    "assume_role_arn": _ROLE,
    "role_session_name": _ROLE,
    "web_identity_token_file": _ROLE,
    "profile": _ROLE,
    "allow_invalid_certificates": _CERTIFICATES,
    "ca_file": _CERTIFICATES,
    "ca_bundle": _CERTIFICATES,
    "tls_ca_file_path": _CERTIFICATES,
    "server_side_encryption": _ENCRYPTION,
    "sse_kms_key_id": _ENCRYPTION,
    "sse_bucket_key_enabled": _ENCRYPTION,
    "sse_customer_key_base64": _ENCRYPTION,
}
_UNSAFE_VARIABLES = (
    "AWS_CONDITIONAL_PUT",
    "AWS_COPY_IF_NOT_EXISTS",
    "AWS_S3_LOCKING_PROVIDER",
    "AWS_S3_ALLOW_UNSAFE_RENAME",
)
"""delta-rs reads these from the environment too."""
_FROM_ENVIRONMENT = {
    "endpoint_url": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
    "region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
}
_SECRETS = ("access_key_id", "secret_access_key", "session_token")
_CHAIN = (
    "software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider,"
    "software.amazon.awssdk.auth.credentials.WebIdentityTokenFileCredentialsProvider,"
    "software.amazon.awssdk.auth.credentials.ProfileCredentialsProvider,"
    "org.apache.hadoop.fs.s3a.auth.IAMInstanceCredentialsProvider"
)


@dataclass(frozen=True)
class S3Options:
    """How a bucket is reached."""

    access_key_id: str = field(default="", repr=False)
    secret_access_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)
    region: str = ""
    endpoint_url: str = ""
    """Empty: AWS, in *region*."""
    path_style: bool = True
    """The bucket's name is part of the path, not of the host's name."""
    anonymous: bool = False
    connect_timeout_s: float = 5.0
    timeout_s: float = 15.0
    max_retries: int = 4
    retry_timeout_s: float = 30.0
    """No request is tried again after so long: with *timeout_s* all ends within a minute."""

    @property
    def attempts(self) -> int:
        """For engines that count attempts and not seconds."""
        return min(self.max_retries, int(self.retry_timeout_s / self.timeout_s)) + 1

    def delta(self) -> dict[str, str]:
        """As delta-rs wants them."""
        given = {
            **{f"aws_{name}": getattr(self, name) for name in _SECRETS},
            "aws_region": self.region,
            "aws_endpoint_url": self.endpoint_url,
            "aws_virtual_hosted_style_request": "" if self.path_style else "true",
            "aws_skip_signature": "true" if self.anonymous else "",
            "allow_http": "true" if self.endpoint_url.startswith("http://") else "",
            "connect_timeout": f"{self.connect_timeout_s:g}s",
            "timeout": f"{self.timeout_s:g}s",
            "max_retries": str(self.max_retries),
            "retry_timeout": f"{self.retry_timeout_s:g}s",
        }
        return {key: value for key, value in given.items() if value}

    def arrow(self) -> dict[str, Any]:
        """Arguments of `pyarrow.fs.S3FileSystem`, but for the retries."""
        given = {
            "access_key": self.access_key_id,
            "secret_key": self.secret_access_key,
            "session_token": self.session_token,
            "region": self.region,
            "endpoint_override": self.endpoint_url,
        }
        return {
            **{key: value for key, value in given.items() if value},
            "anonymous": self.anonymous,
            "force_virtual_addressing": not self.path_style,
            "connect_timeout": self.connect_timeout_s,
            "request_timeout": self.timeout_s,
            "allow_delayed_open": True,  # a small file is one request
        }

    def spark(self) -> dict[str, str]:
        """Settings of a Spark session. They are on the JVM's command line: no secret is here."""
        given = {
            "endpoint": self.endpoint_url,
            "endpoint.region": self.region,
            "path.style.access": str(self.path_style).lower(),
            "aws.credentials.provider": (
                "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
                if self.anonymous
                else _CHAIN
            ),
            "connection.establish.timeout": f"{self.connect_timeout_s:g}s",
            "connection.timeout": f"{self.timeout_s:g}s",
            "attempts.maximum": "0",  # S3A tries again itself; both would multiply
            "retry.limit": str(self.attempts - 1),
            "retry.throttle.limit": str(self.attempts),  # 20 by default: many minutes
        }
        return {f"spark.hadoop.fs.s3a.{key}": value for key, value in given.items() if value}

    def environment(self) -> dict[str, str]:
        """The variables by which processes without these options reach the bucket.

        For the JVM of a driver and Spark's workers; the secrets are here and nowhere else.
        """
        given = {f"AWS_{name.upper()}": getattr(self, name) for name in _SECRETS}
        return {name: value for name, value in given.items() if value}


def s3_options(given: Mapping[str, str], environment: Mapping[str, str]) -> S3Options:
    """The options *given*, else those of the *environment*; ConfigError where one is wrong."""
    _refuse_unsafe(environment)
    said: dict[str, tuple[str, str]] = {}
    for key, value in given.items():
        name = _name(key)
        if name in said:
            raise _wrong(key, f"it says the same as `{said[name][0]}`. Keep one of them")
        if value:
            said[name] = (key, value)
    values: dict[str, Any] = {name: _value(*pair, name) for name, pair in said.items()}
    for name, variables in _FROM_ENVIRONMENT.items():
        found = next((environment[v] for v in variables if environment.get(v)), "")
        values.setdefault(name, found)
    if values["endpoint_url"] and not values["region"]:
        values["region"] = "us-east-1"  # servers other than AWS rarely have regions
    _check(values, said)
    virtual = values.pop("virtual_hosted_style_request", not values["endpoint_url"])
    values.setdefault("path_style", not virtual)
    values.pop("allow_http", None)
    return S3Options(**values)


def without_secrets(given: Mapping[str, str]) -> dict[str, str]:
    """The options that may be written into a task or a log."""
    return {key: value for key, value in given.items() if _NAMES.get(_plain(key)) not in _SECRETS}


def _plain(key: str) -> str:
    return re.sub(r"^(aws_)?(s3_)?", "", key.lower().replace("-", "_").replace(".", "_"))


def _name(key: str) -> str:
    plain = _plain(key)
    if plain in _REFUSED:
        raise _wrong(key, f"it cannot be set. {_REFUSED[plain]}")
    if plain not in _NAMES:
        near = did_you_mean(plain, _NAMES) or f" Known are {', '.join(sorted(_SPELLINGS))}."
        raise _wrong(key, f"there is no such option of S3.{near}", end="")
    return _NAMES[plain]


def _refuse_unsafe(environment: Mapping[str, str]) -> None:
    for variable in _UNSAFE_VARIABLES:
        if environment.get(variable):
            raise ConfigError(f"The variable {variable} is set. {_UNSAFE}.")


def _wrong(key: str, what: str, end: str = ".") -> ConfigError:
    return ConfigError(f"lake.storage_options.{key}: {what}{end}")


_KINDS = {f.name: f.type for f in fields(S3Options)} | dict.fromkeys(
    ("allow_http", "virtual_hosted_style_request"), "bool"
)


def _value(key: str, text: str, name: str) -> Any:
    """*text* as the kind of the option; the text itself is not repeated, it may be a secret."""
    kind = _KINDS[name]
    if kind == "bool":
        if text.lower() not in ("true", "false", "1", "0"):
            raise _wrong(key, "write true or false")
        return text.lower() in ("true", "1")
    if kind == "int":
        if not text.isdecimal():
            raise _wrong(key, "write a whole number")
        return int(text)
    if kind == "float":
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|m|)", text.strip())
        if not found or not float(found[1]):
            raise _wrong(key, "write a number of seconds above 0, e.g. 20 or 20s")
        return float(found[1]) * {"ms": 0.001, "s": 1, "m": 60, "": 1}[found[2]]
    return text


def _check(values: Mapping[str, Any], said: Mapping[str, tuple[str, str]]) -> None:
    """ConfigError for options that do not fit each other."""
    endpoint = values["endpoint_url"]
    if endpoint and not re.match(r"https?://[^/\s]+/?$", endpoint):
        raise ConfigError(
            f"The endpoint {endpoint!r} of the lake's store is not an address. Write scheme and "
            "host, without the bucket, e.g. https://minio.example.com:9000."
        )
    if endpoint.startswith("http://") and values.get("allow_http") is False:
        raise _wrong(said["allow_http"][0], f"it is false, and the endpoint is {endpoint}")
    if bool(values.get("access_key_id")) != bool(values.get("secret_access_key")):
        raise ConfigError(
            "lake.storage_options: access_key_id and secret_access_key belong together: give both, "
            "or neither to use the AWS_* variables or a role."
        )
    if values.get("session_token") and not values.get("access_key_id"):
        raise ConfigError("lake.storage_options: session_token needs its access_key_id beside it.")
    if values.get("anonymous") and values.get("access_key_id"):
        raise _wrong(said["anonymous"][0], "it is true, and keys are given. Keep one of them")
    both = "path_style" in values and "virtual_hosted_style_request" in values
    if both and values["path_style"] == values["virtual_hosted_style_request"]:
        raise _wrong(
            said["path_style"][0],
            f"`{said['virtual_hosted_style_request'][0]}` says the opposite. Keep one of them",
        )
