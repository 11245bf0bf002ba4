"""Who may request a page: clients with the token, with a key that opens it, or with the cookie of a login by either."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from panglot.engine.call import Fault
from panglot.web.access.keys import NO_TOKEN, Wanted
from panglot.web.contract import CONTROL, RequestLine, TokenForm
from panglot.web.front import Front


def refusal_of(front: Front, scope: Any, wanted: Wanted, forms: Sequence[TokenForm]) -> Fault | None:
    """Why a request is refused; None: it is admitted. With a key it is counted, and its scope names the key's holder.

    The caller counts it out with the holder's `release`, once it is answered.
    """
    access, headers = front.access, scope["headers"]
    given = dict(headers).get(b"authorization", b"")
    line = RequestLine(scope["method"].encode(), scope["path"].encode("utf-8", "replace"))
    if not access.refuses_all(wanted.access, given, forms, line, headers):
        return None
    holder = access.holder(wanted.access, given, forms, headers)
    if holder is None:
        # A login takes the token of clients, or a key: so a cookie never loads models.
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
