"""Take credentials out of text before it is kept.

What is replaced: values of keys that name a secret (`password=`, `"api_key": "…"`,
`sasl.jaas.config = …`), passwords in addresses (`https://user:…@host`), bearer and basic
authorization, JSON web tokens, cloud access keys and private key blocks. Values that are not secret
(`null`, `[hidden]`, `none`) stay, so that a settings block still says that none was set.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

HIDDEN = "[redacted]"

_SECRET_KEY = (
    r"(?:passw(?:or)?d|passwd|pwd|passphrase|secret|token|credentials?|assertion|user[._\-]info"
    r"|(?:api|access|secret|private|account|encryption|signing|storage|keystore)[._\-]?key"
    r"|access[._\-]?signature)"
)
_NO_SECRET = (
    r"(?!(?:null|none|nil|undefined|true|false|\[hidden\]|\[redacted\]|\*{3,})"
    r"(?:[\s,;)\]}\"'\\]|$))"
)
_EQUALS = r"\s{0,4}+(?:=>?|:)\s{0,4}+"


@dataclass(frozen=True)
class _Rule:
    """One shape of a credential; looked for only where one of *signs* stands in the text."""

    signs: tuple[str, ...]
    """In lower case."""
    pattern: re.Pattern[str]
    replacement: str


_KEYS = ("passw", "pwd", "passphrase", "secret", "token", "credential", "assertion", "key")
_RULES = (
    _Rule(
        ("private key-----",),
        re.compile(
            r"-----BEGIN ([A-Z0-9 ]{0,40}PRIVATE KEY)-----.*?(?:-----END \1-----|\Z)", re.DOTALL
        ),
        HIDDEN,
    ),
    _Rule(
        ("jaas",),
        re.compile(rf"(?i)(jaas[._]config\\?[\"']?{_EQUALS}){_NO_SECRET}[^\n]+"),
        rf"\g<1>{HIDDEN}",
    ),
    _Rule(  # "password": "…", password='…', \"password\":\"…\"
        (*_KEYS, "_info", ".info", "-info", "signature"),
        re.compile(
            rf"(?i)({_SECRET_KEY}(?:\\?[\"'])?{_EQUALS}(\\?[\"'])){_NO_SECRET}"
            r"(?:(?!\2)(?:\\.|[^\n])){1,4096}(?=\2|\n|\Z)"
        ),
        rf"\g<1>{HIDDEN}",
    ),
    _Rule(  # password=…, --password …
        (*_KEYS, "_info", ".info", "-info", "signature"),
        re.compile(
            rf"(?i)({_SECRET_KEY}(?:{_EQUALS}|(?<=--password)\s|(?<=--token)\s)){_NO_SECRET}"
            r"(?!\[redacted\])[^\s\"'\\,;&)\]}]{1,4096}"
        ),
        rf"\g<1>{HIDDEN}",
    ),
    _Rule(
        ("://",),
        re.compile(r"(://)[^\s/@:\"']{0,256}:[^\s/\"']{1,256}@"),
        rf"\g<1>{HIDDEN}@",
    ),
    _Rule(
        ("bearer", "basic"),
        re.compile(r"(?i)\b(bearer|basic)(\s{1,4})[A-Za-z0-9\-._~+/]{8,4096}={0,2}"),
        rf"\g<1>\g<2>{HIDDEN}",
    ),
    _Rule(("eyj",), re.compile(r"eyJ[\w\-]{8,4096}\.[\w\-]{8,4096}\.[\w\-]{0,4096}"), HIDDEN),
    _Rule(("akia", "asia"), re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"), HIDDEN),
)


_SIGNS = tuple(dict.fromkeys(sign for rule in _RULES for sign in rule.signs))


def redact(text: str) -> str:
    """*text* with every credential replaced by [redacted]."""
    has: Callable[[str], bool] = text.lower().__contains__
    if not any(map(has, _SIGNS)):
        return text
    for rule in _RULES:
        if any(map(has, rule.signs)):
            text = rule.pattern.sub(rule.replacement, text)
    return text
