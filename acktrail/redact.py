"""Take credentials out of text before it is kept.

What is replaced: values of keys that name a secret (`password=`, `"api_key": "…"`,
`sasl.jaas.config = …`), passwords in addresses (`https://user:…@host`), bearer and basic
authorization, JSON web tokens, cloud access keys and private key blocks. Values that are no secret
(`null`, `[hidden]`, `none`) stay, so that a settings block still says that none was set.
"""

from __future__ import annotations

import re

HIDDEN = "[redacted]"

_SECRET_KEY = (
    r"(?:[\w.\-]*(?:passw(?:or)?d|passwd|pwd|passphrase|secret|api[._\-]?key|access[._\-]?key"
    r"|secret[._\-]?key|private[._\-]?key|account[._\-]?key|shared[._\-]?access[._\-]?(?:key|signature)"
    r"|auth[._\-]?token|access[._\-]?token|refresh[._\-]?token|id[._\-]?token|session[._\-]?token"
    r"|client[._\-]?assertion|credentials?|(?:basic[._\-]auth[._\-])?user[._\-]info"
    r"|keystore[._\-]key|truststore[._\-]certificates|keystore[._\-]certificate[._\-]chain)|token)"
)
_NO_SECRET = (
    r"(?!\s*(?:null|none|nil|undefined|true|false|\[hidden\]|\[redacted\]|\*{3,})(?:[\s,;)\]}]|$))"
)
_LOOKS_SECRET = re.compile(
    r"passw|pwd|passphrase|secret|key|token|credential|assertion|signature|user.info|certificate"
    r"|jaas|://|bearer|basic|eyJ|AKIA|ASIA|PRIVATE",
    re.IGNORECASE,
)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN ([A-Z0-9 ]{0,40}PRIVATE KEY)-----.*?(?:-----END \1-----|\Z)", re.DOTALL
)
_JAAS = re.compile(r"(?i)(sasl[._]jaas[._]config[\"']?\s{0,4}[=:]\s{0,4})(?!null|\[hidden\])[^\n]+")
_QUOTED = re.compile(
    rf"(?i)\b({_SECRET_KEY}\\?[\"']?\s{{0,4}}[=:]\s{{0,4}}(\\?[\"']))"
    r"((?:(?!\2|\n).){1,4096})(\2)"
)
_PLAIN = re.compile(
    rf"(?i)\b({_SECRET_KEY}\s{{0,4}}[=:]\s{{0,4}}){_NO_SECRET}([^\s\"'\\,;&)\]}}]{{1,4096}})"
)
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]{1,30}://)[^\s/@:\"']{0,256}:[^\s/\"']{1,256}@")
_AUTHORIZATION = re.compile(r"(?i)\b(bearer|basic)(\s{1,4})[A-Za-z0-9\-._~+/]{8,4096}={0,2}")
_JSON_WEB_TOKEN = re.compile(r"\beyJ[\w\-]{8,4096}\.[\w\-]{8,4096}\.[\w\-]{0,4096}")
_CLOUD_KEY = re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b")


def redact(text: str) -> str:
    """*text* with every credential replaced by [redacted]."""
    if _LOOKS_SECRET.search(text) is None:
        return text
    text = _PRIVATE_KEY.sub(HIDDEN, text)
    text = _JAAS.sub(rf"\g<1>{HIDDEN}", text)
    text = _QUOTED.sub(_hide_quoted, text)
    text = _PLAIN.sub(rf"\g<1>{HIDDEN}", text)
    text = _ADDRESS.sub(rf"\g<1>{HIDDEN}@", text)
    text = _AUTHORIZATION.sub(rf"\g<1>\g<2>{HIDDEN}", text)
    text = _JSON_WEB_TOKEN.sub(HIDDEN, text)
    return _CLOUD_KEY.sub(HIDDEN, text)


def _hide_quoted(match: re.Match[str]) -> str:
    if match.group(3) in ("null", "none", "[hidden]", HIDDEN):
        return match.group(0)
    return f"{match.group(1)}{HIDDEN}{match.group(4)}"
