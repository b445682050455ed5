"""A whole page: head, policy, style, navigation. It asks nothing of the network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from acktrail import __version__
from acktrail.pages.html import Child, escape, join, raw, tag

_HATCH = raw(
    '<svg class="defs" width="0" height="0" aria-hidden="true"><defs>'
    '<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect width="6" height="6" class="hatch-ground"></rect>'
    '<line x1="0" y1="0" x2="0" y2="6" class="hatch-line"></line></pattern></defs></svg>'
)


@cache
def style() -> str:
    """The style sheet."""
    return files("acktrail.pages").joinpath("style.css").read_text(encoding="utf-8")


@cache
def script() -> str:
    """The script: counts down, filters, crosshair. Every page works without it."""
    return files("acktrail.pages").joinpath("script.js").read_text(encoding="utf-8")


@cache
def policy(forms: bool = False) -> str:
    """The content security policy: only this page's own style and script, by their hashes."""
    parts = [
        "default-src 'none'",
        f"style-src '{_digest(style())}'",
        f"script-src '{_digest(script())}'",
        "base-uri 'none'",
        f"form-action {chr(39)}{'self' if forms else 'none'}{chr(39)}",
    ]
    return "; ".join(parts)


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def page(
    title: str,
    header: Child,
    links: Sequence[tuple[str, str]],
    body: Child,
    *,
    refresh_s: int = 0,
    live: bool = False,
    here: str = "",
    forms: bool = False,
) -> str:
    """The page as text. *links* are addresses and names of the navigation; *here* is its own."""
    nav = tag(
        "nav",
        tag(
            "ul",
            *(
                tag("li", tag("a", name, href=href, aria_current="page" if name == here else None))
                for href, name in links
            ),
        ),
        aria_label="Pages" if forms else "Views",
    )
    content = policy(forms)
    head = join(
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=content),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", http_equiv="refresh", content=str(refresh_s)) if refresh_s else None,
        tag("title", title),
        raw(f"<style>{style()}</style>"),
    )
    return (
        "<!doctype html>\n"
        f'<html lang="en"{" data-live" if live else ""}><head>{head}</head><body>'
        f"{_HATCH}{tag('a', 'Skip to the content', href='#content', class_='skip')}"
        f"{tag('header', header)}{nav}{tag('main', body, id='content')}"
        f"{tag('footer', f'acktrail {escape(__version__)}. All times are UTC.')}"
        f"<script>{script()}</script></body></html>\n"
    )
