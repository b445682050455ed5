"""The live page's server: read-only, one lake, a token where it is not bound to loopback."""

from __future__ import annotations

import hmac
import threading
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from acktrail.answers.losses import incident_named
from acktrail.errors import AcktrailError, TransientError
from acktrail.lake import Lake
from acktrail.pages.document import page, policy
from acktrail.pages.html import Html, join, tag
from acktrail.pages.live_links import live_page
from acktrail.pages.live_pages import PAGES, PageRequest, problem
from acktrail.pages.live_question import form, inquiry_of, kept
from acktrail.pages.words import moment
from acktrail.policy.model import Policy

COOKIE = "acktrail_token"
AT_ONCE = 2
"""Pages that are made at one time: memory stays bounded however many people look."""
REFRESH_S = 30
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
Reply = Callable[[Request], Response]


class TokenRequired:
    """Lets through who has the token: as a cookie, a bearer token, or once in the address."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or hand on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        known = [request.cookies.get(COOKIE, ""), bearer if scheme.lower() == "bearer" else ""]
        answer: Callable[[Scope, Receive, Send], Awaitable[None]] = self._app
        if self._is(request.query_params.get("token", "")):
            answer = self._remembered(request)
        elif not any(self._is(given) for given in known):
            words = "A token is needed. Open the address that `acktrail ui` printed.\n"
            answer = PlainTextResponse(words, status_code=401, headers=_HEADERS)
        await answer(scope, receive, send)

    def _is(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())

    def _remembered(self, request: Request) -> Response:
        """The same address without the token, which a cookie has from now on."""
        rest = request.url.remove_query_params("token")
        target = rest.path + (f"?{rest.query}" if rest.query else "")
        reply = RedirectResponse("/" + target.lstrip("/"), status_code=303, headers=_HEADERS)
        reply.set_cookie(COOKIE, self._token, httponly=True, samesite="strict")
        return reply


def live_app(
    lake: Lake,
    decided: Policy,
    hosts: Sequence[str],
    token: str | None = None,
    as_of: datetime | None = None,
) -> Starlette:
    """The application over *lake*; *as_of* holds its clock still.

    It answers requests for *hosts* only: a page elsewhere cannot reach it by a name of its own.
    """
    turn = threading.BoundedSemaphore(AT_ONCE)

    def reply(request: Request) -> Response:
        with turn:
            return _reply(request, lake, decided, as_of)

    middleware = [Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False)]
    if token:
        middleware.append(Middleware(TokenRequired, token=token))
    routes = [Route(path, reply, methods=["GET"]) for path in PAGES]
    routes.append(Route("/favicon.ico", lambda _: Response(status_code=204), methods=["GET"]))
    return Starlette(routes=routes, middleware=middleware, exception_handlers={404: _not_found})


def _reply(request: Request, lake: Lake, decided: Policy, as_of: datetime | None) -> Response:
    query = dict(request.query_params)
    path = request.url.path
    name, made = PAGES[path]
    now = as_of or datetime.now(UTC)
    try:
        asked = inquiry_of(query, now)
        incident = query.get("incident") or None
        whole = str(incident_named(lake, incident)["incident"]) if incident else None
        with lake.one_look(), live_page():
            body = made(PageRequest(lake, asked, decided, whole))
    except AcktrailError as error:
        status = 503 if isinstance(error, TransientError) else 400
        return _page(name, path, query, problem("This cannot be shown", [str(error)]), status)
    said = f"{moment(asked.since)} to {moment(asked.until)}, asked at {moment(now)}"
    live = as_of is None and not query.get("until")
    return _page(name, path, query, body, said=said, live=live)


def _not_found(request: Request, _error: Exception) -> Response:
    lines = ["The pages are listed above."]
    return _page("", request.url.path, {}, problem("There is no such page", lines), 404)


def _page(
    name: str,
    path: str,
    query: dict[str, str],
    body: Html,
    status: int = 200,
    said: str = "",
    live: bool = False,
) -> Response:
    rest = kept(query)
    links = [(f"{address}{rest}", title) for address, (title, _) in PAGES.items()]
    header = join(
        tag("h1", "acktrail: ", name or "not found"),
        tag("p", said) if said else None,
        form(path, query) if name else None,
    )
    refresh = REFRESH_S if live and path == "/budgets" else 0
    title = f"acktrail: {name or 'not found'}"
    text = page(title, header, links, body, refresh_s=refresh, live=live, here=name, forms=True)
    headers = {**_HEADERS, "Content-Security-Policy": f"{policy(True)}; frame-ancestors 'none'"}
    return HTMLResponse(text, status_code=status, headers=headers)
