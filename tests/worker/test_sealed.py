"""Results that travel between machines are opened only where a worker of this server wrote them for this request."""

from __future__ import annotations

import pytest

from panglot_worker.items.pipelines import handoff

KEY = b"k" * 32


def sealed(value: object, key: bytes = KEY, border: str = "preprocess", head: bytes = b"head") -> bytes:
    pieces = handoff.pack(value)
    return handoff.seal(key, border, head, pieces) + b"".join(pieces)


def test_what_was_sealed_is_opened() -> None:
    body = sealed({"picture": bytearray(100_000), "n": 1})
    value = handoff.unpack(handoff.opened(KEY, handoff.border_before(["inference"]), b"head", body))
    assert value == {"picture": bytearray(100_000), "n": 1}


@pytest.mark.parametrize(
    "body",
    [
        sealed(1, key=b"o" * 32),
        sealed(1, border="inference"),
        sealed(1, head=b"another request"),
        sealed(1)[:-1],
        sealed(1) + b"\0",
        bytes(64) + sealed(1)[64:],
        b"".join(handoff.pack(1)),
        b"",
    ],
    ids=["another key", "another border", "another request", "cut", "longer", "no proof", "not sealed", "nothing"],
)
def test_anything_else_is_never_unpickled(body: bytes) -> None:
    with pytest.raises(handoff.NotSealed):
        handoff.opened(KEY, "preprocess", b"head", body)
