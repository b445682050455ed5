"""How to be let in over HTTP: tokens, passwords, TLS; nothing of it is ever printed."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acktrail.errors import ConfigError
from acktrail.logs.redact import redact

if TYPE_CHECKING:
    import requests

    from acktrail.settings.sources import PrometheusSource, ScrapeSource


@dataclass(frozen=True)
class HttpAccess:
    """Credentials, TLS and timeout of one source."""

    timeout_s: float = 30.0
    bearer_token: str | None = None
    bearer_token_file: str | None = None
    basic: tuple[str, str] | None = None
    ca_file: str | None = None
    cert: tuple[str, str] | str | None = None
    verify_tls: bool = True

    def __repr__(self) -> str:
        return f"HttpAccess(timeout_s={self.timeout_s})"

    @classmethod
    def of(cls, settings: PrometheusSource | ScrapeSource) -> HttpAccess:
        """From the settings of a source."""
        basic = None
        if settings.username is not None:
            password = settings.password.get_secret_value() if settings.password else ""
            basic = (settings.username, password)
        cert: Any = settings.cert_file
        if settings.cert_file and settings.key_file:
            cert = (settings.cert_file, settings.key_file)
        token = settings.bearer_token
        return cls(
            timeout_s=settings.timeout_s,
            bearer_token=token.get_secret_value() if token else None,
            bearer_token_file=settings.bearer_token_file,
            basic=basic,
            ca_file=settings.ca_file,
            cert=cert,
            verify_tls=settings.verify_tls,
        )

    def session(self) -> requests.Session:
        """A session that takes nothing from the environment (proxies, .netrc)."""
        import requests

        if not self.verify_tls:
            import urllib3

            # Asked for in the settings: no need to say it again at every request.
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
        session = requests.Session()
        session.trust_env = False
        session.verify = (self.ca_file or True) if self.verify_tls else False
        session.cert = self.cert
        session.auth = self.basic
        return session

    def headers(self) -> dict[str, str]:
        """The headers of the next request; a token file is read again each time."""
        token = self.bearer_token
        if self.bearer_token_file:
            try:
                token = Path(self.bearer_token_file).read_text(encoding="utf-8").strip()
            except OSError as error:
                raise ConfigError(
                    f"`bearer_token_file` {self.bearer_token_file} cannot be read: "
                    f"{error.strerror}."
                ) from None
        return {"Authorization": f"Bearer {token}"} if token else {}


_REASONS = (
    ({"JSONDecodeError"}, "the answer is not JSON"),
    ({"ReadTimeout", "ReadTimeoutError", "ConnectTimeout", "ConnectTimeoutError"}, "timed out"),
    ({"IncompleteRead", "ChunkedEncodingError"}, "the answer broke off"),
    ({"RemoteDisconnected"}, "the connection was closed without an answer"),
)


def why(error: BaseException) -> str:
    """The reason of a failed request, in a few words: no address, no query, no nested exceptions.

    requests and urllib3 wrap what happened several times; the innermost says it.
    """
    chain = list(_wrapped(error))
    names = {type(each).__name__ for each in chain}
    for kinds, said in _REASONS:
        if names & kinds:
            return said
    for each in reversed(chain):
        if isinstance(each, ssl.SSLError):
            return f"TLS failed: {getattr(each, 'verify_message', '') or each.reason or each}"
        if isinstance(each, OSError) and each.strerror:
            return str(each.strerror).lower()
    text = " ".join(str(chain[-1]).split())
    return redact(text[:200] or type(chain[-1]).__name__)


def _wrapped(error: BaseException) -> Iterator[BaseException]:
    """*error*, and what it wraps, outermost first."""
    seen: set[int] = set()
    inner: BaseException | None = error
    while inner is not None and id(inner) not in seen:
        seen.add(id(inner))
        yield inner
        held = [getattr(inner, "reason", None), *inner.args]
        wrapped = next((each for each in held if isinstance(each, BaseException)), None)
        inner = wrapped or inner.__cause__ or inner.__context__
