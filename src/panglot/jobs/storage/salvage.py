"""Read every whole row of jobs out of the pages of a damaged database, without SQLite: trees and header may be lost.

Before that, pages of committed transactions in the log replace pages of the database, as SQLite would do.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

PAGE = 4096
LEAF = 13
"""The first byte of a page with rows of a table."""
WIDTHS = (0, 1, 2, 3, 4, 6, 8)
"""Bytes of a whole number, by its type in a record."""


class Salvaged(NamedTuple):
    """All rows that are whole, by number."""

    jobs: dict[int, tuple[Any, ...]]
    payloads: dict[int, bytes]
    outbox: dict[int, tuple[Any, ...]]


def read(path: Path, log: Path, columns: int, order: tuple[int, int]) -> Salvaged:
    """The rows of a database with so many columns of a job; `order` are the columns `state` and `attempts`."""
    data = path.read_bytes() if path.exists() else b""
    size = PAGE
    if data[:16] == b"SQLite format 3\0" and len(data) >= 18:
        size = struct.unpack(">H", data[16:18])[0]
        size = 65536 if size == 1 else size
    pages = {number + 1: data[number * size : (number + 1) * size] for number in range(-(-len(data) // size))}
    pages.update(_committed(log, size))
    rows = Salvaged({}, {}, {})
    for number, page in pages.items():
        for rowid, values in _rows(number, page, size, pages):
            _add(rows, rowid, values, columns, order)
    return rows


def _add(rows: Salvaged, rowid: int, values: list[Any], columns: int, order: tuple[int, int]) -> None:
    """Add a row to its table, which its columns tell."""
    if len(values) == columns and isinstance(values[1], str) and len(values[1]) == 26:
        state, attempts = order
        if not isinstance(values[state], int) or not isinstance(values[attempts], int):
            return
        known = rows.jobs.get(rowid)
        # A page that was split leaves a copy behind: the later of two counts.
        if known is None or (known[attempts], known[state]) < (values[attempts], values[state]):
            rows.jobs[rowid] = (rowid, *values[1:])
    elif len(values) == 2 and isinstance(values[1], bytes) and values[0] is None:
        rows.payloads[rowid] = values[1]
    elif len(values) == 9 and isinstance(values[1], str) and values[1].startswith("evt_"):
        rows.outbox[rowid] = (rowid, *values[1:])


def _rows(number: int, page: bytes, size: int, pages: dict[int, bytes]) -> Iterator[tuple[int, list[Any]]]:
    """The rows of a page; none where it is no leaf of a table."""
    # A page that is cut has whole rows before the cut. The other rows raise below, or are too short.
    at = 100 if number == 1 else 0
    if len(page) < at + 8 or page[at] != LEAF:
        return
    count = struct.unpack_from(">H", page, at + 3)[0]
    for index in range(min(count, size // 4)):
        try:
            start = struct.unpack_from(">H", page, at + 8 + 2 * index)[0]
            row = _cell(page, start, size, pages)
        except (IndexError, struct.error, KeyError, ValueError):
            continue
        if row is not None:
            yield row


def _committed(log: Path, page_size: int) -> dict[int, bytes]:
    """The pages of all transactions that the log holds whole."""
    data = log.read_bytes() if log.exists() else b""
    if len(data) < 32:
        return {}
    magic, _, size, _, salt1, salt2, sum1, sum2 = struct.unpack(">8I", data[:32])
    order = ">" if magic & 1 else "<"
    if size != page_size or _checksum(order, data[:24], 0, 0) != (sum1, sum2):
        return {}
    committed: dict[int, bytes] = {}
    waiting: dict[int, bytes] = {}
    checksum = sum1, sum2
    for at in range(32, len(data) - page_size - 23, page_size + 24):
        number, commit, first, second, third, fourth = struct.unpack(">6I", data[at : at + 24])
        checksum = _checksum(order, data[at : at + 8], *checksum)
        checksum = _checksum(order, data[at + 24 : at + 24 + page_size], *checksum)
        # A frame of an earlier run through the log, which SQLite writes from the beginning again, or a damaged one.
        if (first, second) != (salt1, salt2) or checksum != (third, fourth):
            break
        waiting[number] = data[at + 24 : at + 24 + page_size]
        if commit:
            committed.update(waiting)
            waiting = {}
    return committed


def _checksum(order: str, data: bytes, first: int, second: int) -> tuple[int, int]:
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for index in range(0, len(words), 2):
        first = (first + words[index] + second) & 0xFFFFFFFF
        second = (second + words[index + 1] + first) & 0xFFFFFFFF
    return first, second


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index in range(9):
        byte = data[at + index]
        if index == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 127
        if byte < 128:
            return value, at + index + 1
    raise ValueError("no number")


def _cell(page: bytes, at: int, size: int, pages: dict[int, bytes]) -> tuple[int, list[Any]] | None:
    """A row, with its parts on overflow pages; None where a part is missing."""
    length, at = _varint(page, at)
    rowid, at = _varint(page, at)
    most = size - 35
    if length <= most:
        record = page[at : at + length]
    else:
        least = (size - 12) * 32 // 255 - 23
        local = least + (length - least) % (size - 4)
        local = local if local <= most else least
        following = struct.unpack_from(">I", page, at + local)[0]
        pieces, left = [page[at : at + local]], length - local
        while left > 0:
            piece = pages[following]
            if len(piece) < min(left, size - 4) + 4:
                return None
            pieces.append(piece[4 : 4 + min(left, size - 4)])
            left -= len(pieces[-1])
            following = struct.unpack_from(">I", piece, 0)[0]
        record = b"".join(pieces)
    if len(record) != length:
        return None
    values = _values(record)
    return None if values is None else (rowid, values)


def _values(record: bytes) -> list[Any] | None:
    header, at = _varint(record, 0)
    kinds = []
    while at < header:
        kind, at = _varint(record, at)
        kinds.append(kind)
    values: list[Any] = []
    at = header
    for kind in kinds:
        if kind == 0:
            values.append(None)
        elif kind in (8, 9):
            values.append(kind - 8)
        elif kind < len(WIDTHS):
            width = WIDTHS[kind]
            values.append(int.from_bytes(record[at : at + width], "big", signed=True))
            at += width
        elif kind == 7:
            values.append(struct.unpack_from(">d", record, at)[0])
            at += 8
        else:
            width = (kind - 12) // 2
            piece = record[at : at + width]
            values.append(piece.decode() if kind & 1 else piece)
            at += width
    return values if at == len(record) else None
