"""Who may request a page: whoever has the token, a key that is good for it, or the cookie of a login by either."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from panglot.engine.call import Fault
from panglot.web.access.keys import NO_TOKEN, Wanted
from panglot.web.contract import CONTROL, RequestLine, TokenForm
from panglot.web.front import Front


def refusal_of(front: Front, scope: Any, wanted: Wanted, forms: Sequence[TokenForm]) -> Fault | None:
    """Why a request is not admitted. One that comes with a key is counted, and has the key's holder in its scope."""
    access, headers = front.access, scope["headers"]
    given = dict(headers).get(b"authorization", b"")
    line = RequestLine(scope["method"].encode(), scope["path"].encode("utf-8", "replace"))
    if not access.refuses_all(wanted.access, given, forms, line, headers):
        return None
    holder = access.holder(wanted.access, given, forms, headers)
    if holder is None:
        # Whoever has logged in has shown the token of clients, or a key: a cookie never loads models.
        session = front.sessions.find(scope["method"], headers) if wanted.access != CONTROL else None
        if session is None:
            return NO_TOKEN
        holder = session.holder
    if holder is None:
        return None
    fault = holder.refusal(wanted)
    if fault is None:
        holder.take()
        scope["key_holder"] = holder
    if fault is None or fault.status == 429:
        scope["limits"] = holder.limits()
    return fault
