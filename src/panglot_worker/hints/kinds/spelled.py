"""Values that JSON spells as a string: datetime, date, time, UUID.

One grammar for every CPython: `fromisoformat` takes other texts in each version.
"""

from __future__ import annotations

import datetime
import re
import uuid
from typing import Any, Callable, Match, Tuple

from panglot_worker.hints.kind import Kind, from_text
from panglot_worker.hints.misfit import must_be

_DATE = r"(\d{4})-(\d\d)-(\d\d)"
_TIME = r"(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(Z|z|[+-]\d\d:?\d\d)?"
DATE = re.compile(_DATE, re.ASCII)
TIME = re.compile(_TIME, re.ASCII)
DATETIME = re.compile(_DATE + "[Tt ]" + _TIME, re.ASCII)
UUID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)


def _clock(groups: Tuple[Any, ...]) -> Tuple[int, int, int, int, Any]:
    hour, minute, second, fraction, zone = groups
    microsecond = int(((fraction or "") + "000000")[:6])
    return int(hour), int(minute), int(second or 0), microsecond, _zone(zone)


def _zone(text: Any) -> Any:
    if not text:
        return None
    if text in "Zz":
        return datetime.timezone.utc
    away = datetime.timedelta(hours=int(text[1:3]), minutes=int(text[-2:]))
    return datetime.timezone(-away if text[0] == "-" else away)


def _datetime(match: Match[str]) -> datetime.datetime:
    year, month, day = (int(group) for group in match.groups()[:3])
    hour, minute, second, microsecond, zone = _clock(match.groups()[3:])
    return datetime.datetime(year, month, day, hour, minute, second, microsecond, zone)


def _date(match: Match[str]) -> datetime.date:
    year, month, day = (int(group) for group in match.groups())
    return datetime.date(year, month, day)


def _time(match: Match[str]) -> datetime.time:
    hour, minute, second, microsecond, zone = _clock(match.groups())
    return datetime.time(hour, minute, second, microsecond, zone)


def _kind(of: type, expects: str, pattern: Any, made: Callable[[Match[str]], Any], format: str, example: str) -> Kind:
    """The kind of a type whose values have one spelling."""

    def convert(value: Any) -> Any:
        match = pattern.fullmatch(value) if type(value) is str else None
        if match is not None:
            try:
                return made(match)
            except ValueError as error:
                raise must_be("%s (%s)" % (expects, error), value) from None
        if type(value) is of:
            return value
        raise must_be(expects, value)

    schema = {"type": "string", "format": format}
    return Kind(expects, convert, from_text(expects, lambda text: convert(text.strip())), schema, example)


MOMENT = "a date and time such as 2024-05-01T12:30:00Z"
SPELLED: Tuple[Tuple[Any, Kind], ...] = (
    (datetime.datetime, _kind(datetime.datetime, MOMENT, DATETIME, _datetime, "date-time", "2024-05-01T12:30:00Z")),
    (datetime.date, _kind(datetime.date, "a date such as 2024-05-01", DATE, _date, "date", "2024-05-01")),
    (datetime.time, _kind(datetime.time, "a time such as 12:30:00", TIME, _time, "time", "12:30:00")),
    (uuid.UUID, _kind(uuid.UUID, "a UUID", UUID, lambda match: uuid.UUID(match.group()), "uuid",
                      "123e4567-e89b-12d3-a456-426614174000")),
)  # fmt: skip
