"""Refusals by the head of a request, before its body is read: no token, no right, or a body that is too large."""

from __future__ import annotations

from panglot.engine.call import Fault
from panglot.web.access.keys import NO_TOKEN, KeyHolder, Wanted
from panglot.web.contract import RequestLine
from panglot.web.front import Front
from panglot.web.http1.exchange import NO_MEMORY, Exchange
from panglot.web.http1.heads.request_head import MILLISECONDS, RequestHead, RequestRefused
from panglot.web.limits.quota import ByteQuota
from panglot.web.v2 import metadata

SMALL_BODY = 65536
"""The largest body of a request that is not for the script."""
NOT_SPOKEN = Fault(505, "bad_version", "this server speaks HTTP/1.1 and HTTP/1.0")
NO_UPGRADE = Fault(400, "no_upgrade", "this server does not change protocols")
TOO_MANY_CONNECTIONS = Fault(503, "too_many_connections", "this server has too many connections", 1)
BAD_TIMEOUT = Fault(400, "bad_timeout", "X-Timeout-Ms is no number of milliseconds such as 1500")


def check_old_version(version: str, head: RequestHead) -> int:
    """The minor version of a request that is not HTTP/1.1: 0. Raises RequestRefused for all but HTTP/1.0."""
    if version != "1.0":
        # The parser reports a request line without a version as 0.9: that is a malformed request.
        raise RequestRefused(NOT_SPOKEN if version != "0.9" else NOT_SPOKEN._replace(status=400), "http")
    # HTTP/1.0 knows no interim answers: its clients would take 100 Continue for the answer itself.
    head.expects_continue = False
    return 0


def admit(front: Front, head: RequestHead, method: bytes, exchange: Exchange) -> None:
    """Refuse a request to the script by its head alone, or count it for its key. Raises RequestRefused."""
    quota, length = exchange.quota, head.content_length
    if head.given_timeout and not MILLISECONDS.fullmatch(head.given_timeout):
        raise RequestRefused(BAD_TIMEOUT, "timeout")
    # Before the sizes: a client without a token does not learn how much memory is free.
    if lacks_token(front, head, method, exchange):
        _admit_known(front, head, method, exchange)
    if exchange.goes_to_file:
        check_spooled(exchange, length)
    elif length > quota.largest_body:
        raise RequestRefused(too_large(quota.largest_body), "body")
    elif lacks_memory(quota, length):
        raise RequestRefused(NO_MEMORY, "held")


def lacks_memory(quota: ByteQuota, length: int) -> bool:
    """Whether there is no space for a body, by the length that its head gives.

    Only an early look: `take` counts the bytes as they come, and decides.
    """
    return quota.used + length > quota.most_for_large and not quota.fits(length)


def lacks_token(front: Front, head: RequestHead, method: bytes, exchange: Exchange) -> bool:
    """Whether a request carries no token that its route asks for."""
    access, forms = exchange.route.access, exchange.model.contract.token_forms
    if forms:
        line = RequestLine(method, head.target(front.paths.raw)[0])
        return front.access.refuses_all(access, head.authorization, forms, line, head.headers)
    return front.access.refuses(access, head.authorization)


def shown_key(front: Front, head: RequestHead, exchange: Exchange) -> KeyHolder | None:
    """The client that has the key in the headers of a request; None without one."""
    forms = exchange.model.contract.token_forms
    return front.access.holder(exchange.route.access, head.authorization, forms, head.headers)


def by_session(front: Front, head: RequestHead, method: bytes, exchange: Exchange) -> bool:
    """Whether only the cookie of a session has admitted a request."""
    if not lacks_token(front, head, method, exchange):
        return False
    return exchange.holder is None or shown_key(front, head, exchange) is not exchange.holder


def _admit_known(front: Front, head: RequestHead, method: bytes, exchange: Exchange) -> None:
    """Admit a request without the token by its key, or by its session. Raises RequestRefused."""
    holder = shown_key(front, head, exchange)
    if holder is None:
        session = front.sessions.find(method.decode(), head.headers)
        if session is None:
            raise RequestRefused(NO_TOKEN, "token")
        holder = session.holder
    if holder is None:
        return
    route = exchange.route
    path = head.target(front.paths.raw)[0].decode("utf-8", "replace")
    # Where the body names the model, `naming` looks whether the key reaches it.
    wanted = Wanted(route.access, path, "" if route.fields else exchange.model.name)
    fault = holder.refusal(wanted)
    if fault is None:
        exchange.count_for(holder)
        return
    if fault.status == 429:
        exchange.lines += holder.limit_lines()
    raise RequestRefused(fault, "token" if fault.status == 401 else "key")


def check_spooled(exchange: Exchange, size: int) -> None:
    """Refuse a body that goes to a file and is larger than a video may be. Raises RequestRefused."""
    most = exchange.model.settings.video_bytes
    if size > most:
        raise RequestRefused(too_large(most, "video_bytes"), "body")


def check_page_body(front: Front, head: RequestHead, size: int) -> None:
    """Refuse a large body on a route that is not a script's. Raises RequestRefused."""
    if size > SMALL_BODY:
        # A request with tensors comes here when there is no such model: then 404 tells more than 413.
        missing = metadata.unknown(front.models, head.target()[0].decode("utf-8", "replace"))
        raise RequestRefused(missing or Fault(413, "body_too_large", "this route takes no large body"), "body")


def over_quota(quota: ByteQuota, size: int) -> tuple[Fault, str]:
    """Why the quota did not take the last bytes of a body that now has `size`, and the limit for the metrics."""
    most = quota.largest_body
    return (too_large(most), "body") if size > most else (NO_MEMORY, "held")


def too_large(most: int, setting: str = "max_body") -> Fault:
    return Fault(413, "body_too_large", f"the request body is larger than {setting}, {most} bytes")
