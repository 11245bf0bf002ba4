"""The key that the calls of a connection come with."""

from __future__ import annotations

from panglot.web.access.key_file import Key
from panglot.web.access.keys import KeyHolder
from panglot.web.access.tokens import Access, Headers
from panglot.web.contract import TokenForm


class RememberedKey:
    """Remembers the key that a connection showed last, so that its secret is hashed once and not for each call."""

    __slots__ = ("_access", "_holder", "_key", "_shown")

    def __init__(self, access: Access) -> None:
        self._access = access
        self._shown: tuple[str, bytes, tuple[TokenForm, ...]] | None = None
        self._holder: KeyHolder | None = None
        self._key: Key | None = None

    def holder(
        self, access: str, authorization: bytes, forms: tuple[TokenForm, ...], headers: Headers
    ) -> KeyHolder | None:
        """The client that has the key which a call shows, whatever the key opens; None without one."""
        # The access and the forms too: what is a secret on one route may be none on another.
        shown = (access, authorization, forms)
        # A changed file gives the holder another key, or none: the remembered secret may be wrong now.
        if self._holder is not None and self._shown == shown and self._holder.key is self._key:
            return self._holder
        holder = self._access.holder(access, authorization, forms, headers)
        self._shown, self._holder, self._key = shown, holder, holder.key if holder is not None else None
        return holder
