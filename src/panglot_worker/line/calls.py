"""The frames of calls between models, and bodies in several pieces: what front and worker agree on besides `wire`.

CALL and ANSWER hold the length of a JSON object, the object, and a body. The body of a CALL may be in pieces, and so
may the body of the item that the front makes of it. It then begins with a table, which says for each piece whether its
bytes follow the table or lie in shared memory. All pieces in their order are the body.
"""

from __future__ import annotations

import json
import struct
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from panglot_worker.line.wire import HEADER, JOIN_BELOW, Buffer, WireError

ABOUT_LENGTH = struct.Struct("<I")
PIECE_ROW = struct.Struct("<QQII")
MOST_PIECES = 4096


class BodyPiece(NamedTuple):
    """A piece of a body."""

    lease: int
    """In a CALL, the item or answer that the worker was leased the buffer with; 0: the bytes follow the table."""
    location: int
    """Where the buffer is in shared memory."""
    start: int
    """Where the piece begins in that buffer."""
    length: int


def frame(kind: int, generation: int, about: Dict[str, Any], body: Sequence[Buffer] = ()) -> List[Buffer]:
    """The buffers of a CALL or an ANSWER, in the order to send them."""
    text = json.dumps(about).encode()
    size = sum(map(len, body))
    length = ABOUT_LENGTH.size + len(text) + size
    start = HEADER.pack(length, kind, 0, 0, generation) + ABOUT_LENGTH.pack(len(text)) + text
    return [b"".join((start, *body))] if size < JOIN_BELOW else [start, *body]


def read(payload: memoryview) -> Tuple[memoryview, memoryview]:
    """The JSON text and the body of a CALL or an ANSWER. Raises WireError when it ends before them."""
    start = ABOUT_LENGTH.size
    end = start + (ABOUT_LENGTH.unpack_from(payload)[0] if len(payload) >= start else 0)
    if not start < end <= len(payload):
        raise WireError("a frame of %d bytes ends inside of what it says about itself" % len(payload))
    return payload[start:end], payload[end:]


def table(pieces: Sequence[BodyPiece]) -> bytes:
    """The table that a body in pieces begins with."""
    return ABOUT_LENGTH.pack(len(pieces)) + b"".join(PIECE_ROW.pack(*piece) for piece in pieces)


def pieces(body: memoryview) -> Tuple[List[BodyPiece], memoryview]:
    """The pieces of a body, and the bytes behind its table. Raises WireError when the two do not fit together."""
    count = ABOUT_LENGTH.unpack_from(body)[0] if len(body) >= ABOUT_LENGTH.size else 0
    end = ABOUT_LENGTH.size + count * PIECE_ROW.size
    if not 0 < count <= MOST_PIECES or end > len(body):
        raise WireError("a body of %d bytes holds no table of %d pieces" % (len(body), count))
    rows = [BodyPiece(*row) for row in PIECE_ROW.iter_unpack(body[ABOUT_LENGTH.size : end])]
    if sum(piece.length for piece in rows if not piece.location) != len(body) - end:
        raise WireError("a body of %d bytes does not hold the pieces of its table" % len(body))
    return rows, body[end:]
