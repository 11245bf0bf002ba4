"""Reading durations, sizes, numbers and switches the way people write them."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping

from panglot.settings import counts, devices, pools
from panglot_worker.net.hosts import AddressRefused, entry

SECONDS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
BYTES = {
    "": 1,
    "b": 1,
    "kb": 1000,
    "mb": 1000**2,
    "gb": 1000**3,
    "k": 1024,
    "m": 1024**2,
    "g": 1024**3,
    "kib": 1024,
    "mib": 1024**2,
    "gib": 1024**3,
}
YES = {"true", "yes", "on", "1"}
NO = {"false", "no", "off", "0"}
NUMBER = re.compile(r"\s*([-+]?[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?)\s*([a-z]*)\s*", re.IGNORECASE)
ORIGIN = re.compile(
    r"(?P<start>(?P<scheme>https?|[a-z-]+-extension)://(?:[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?|\[[0-9a-f:.]+\]))"
    r"(?::(?P<port>[0-9]{1,5}))?"
)


def _split(text: str, expected: str) -> tuple[float, str]:
    match = NUMBER.fullmatch(text)
    if match is None:
        raise ValueError(f"expected {expected}")
    return float(match[1]), match[2].lower()


def seconds(text: str) -> float:
    number, unit = _split(text, "a duration such as 30, 30s, 500ms or 2m")
    if unit not in SECONDS:
        raise ValueError(f"'{unit}' is no unit of time; use ms, s, m or h")
    return number * SECONDS[unit]


def size(text: str) -> int:
    number, unit = _split(text, "a size such as 1048576, 64MiB or 10MB")
    if unit not in BYTES:
        raise ValueError(f"'{unit}' is no unit of size; use B, kB, MB, GB, KiB, MiB or GiB")
    if math.isinf(number * BYTES[unit]):
        raise ValueError("no machine has as much")
    return int(number * BYTES[unit])


def exact(number: float) -> int:
    """A number of a TOML file as an integer. Raises ValueError when it is none."""
    if isinstance(number, float) and not number.is_integer():
        raise ValueError("expected a whole number")
    return int(number)


def real(number: float) -> float:
    """A number of a TOML file as a float. Raises ValueError for an integer too large for one."""
    try:
        return float(number)
    except OverflowError:
        raise ValueError("expected a finite number") from None


def whole(text: str) -> int:
    try:
        return int(text.strip())
    except ValueError:
        raise ValueError("expected a whole number") from None


def fronts(text: str) -> int:
    """How many fronts a text means; 0 for `auto`. Raises ValueError."""
    if text.strip().lower() == "auto":
        return 0
    try:
        count = whole(text)
    except ValueError:
        raise ValueError("expected a whole number, or auto") from None
    if count < 1:
        raise ValueError("must be at least 1, or auto")
    return count


def number(text: str) -> float:
    try:
        return float(text.strip())
    except ValueError:
        raise ValueError("expected a number") from None


def switch(text: str) -> bool:
    word = text.strip().lower()
    if word in YES:
        return True
    if word in NO:
        return False
    raise ValueError("expected true or false")


def words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def hosts(text: str) -> tuple[str, ...]:
    """A list of names or addresses, with or without a port, in lower case. Raises ValueError."""
    names = words(text.lower())
    for host in names:
        try:
            entry(host)
        except AddressRefused:
            raise ValueError(f"'{host}' is no host; write name, name:port or [address]:port") from None
    return names


def origins(text: str) -> tuple[str, ...]:
    """Origins of web pages as browsers name them: scheme, host, and a port that is not the usual one."""
    return tuple(_origin(word) for word in words(text.lower()))


def _origin(word: str) -> str:
    if word in ("*", "null"):
        return word
    match = ORIGIN.fullmatch(word)
    if match is None or not 0 < int(match["port"] or 1) < 65536:
        raise ValueError(f"'{word}' is no origin; write https://host or https://host:port, or * for all")
    usual = {"https": "443", "http": "80"}.get(match["scheme"])
    return match["start"] if match["port"] == usual else word


def ports(text: str) -> tuple[int, ...]:
    """A range of ports such as 20000-20099; empty text is none. Raises ValueError."""
    if not text:
        return ()
    first, dash, last = text.partition("-")
    if not (first.strip().isdigit() and (last if dash else first).strip().isdigit()):
        raise ValueError("expected two ports such as 20000-20099")
    low, high = int(first), int(last if dash else first)
    if not 0 < low <= high < 65536:
        raise ValueError("expected two ports between 1 and 65535, the lower one first")
    return low, high


def amounts(text: str) -> dict[str, float]:
    """Resources of a machine with their amounts, such as cpu=1,gpu=0.5. Raises ValueError."""
    pairs = [word.partition("=")[::2] for word in words(text)]
    return amounts_of({name.strip(): number(amount) if amount else None for name, amount in pairs})


def amounts_of(table: Mapping[str, object]) -> dict[str, float]:
    """The same, from a table. Raises ValueError."""
    result = {}
    for name, amount in table.items():
        if not name or isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 <= amount < 1e6:
            raise ValueError("expected resources with their amounts, such as cpu=1,gpu=1")
        if name.lower() in ("cpu", "gpu"):
            name = name.lower()
        if amount > 1 and amount != int(amount) and name != "memory":
            raise ValueError(f"{name}={amount:g}: above 1, amounts are whole numbers")
        result[name] = float(amount)
    return result


def folder(text: str) -> str:
    """The full path of a folder; empty text stays empty. Raises ValueError when there is no such folder."""
    if not text:
        return ""
    path = os.path.expanduser(text)
    if not os.path.isdir(path):
        raise ValueError("there is no such folder")
    return os.path.realpath(path)


def show_size(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if count == int(count) else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError


def show_seconds(duration: float) -> str:
    return f"{duration * 1000:g} ms" if 0 < duration < 1 else f"{duration:g} s"


def show(value: object, kind: str) -> str:
    """A setting's value as people write it, with its unit; `-` for none."""
    if kind == "size" and isinstance(value, int):
        return show_size(value)
    if kind == "seconds" and isinstance(value, int | float):
        return show_seconds(value)
    if kind == "fronts" and value == 0:
        return "auto"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if kind == "amounts" and isinstance(value, Mapping):
        return ", ".join(f"{name}={amount:g}" for name, amount in value.items()) or "-"
    if kind == "ports":
        return f"{value[0]}-{value[1]}" if isinstance(value, tuple) and value else "-"
    if isinstance(value, Mapping):
        return pools.show(value) or "-"
    return ", ".join(map(str, value)) or "-" if isinstance(value, tuple) else str(value) or "-"


PARSERS: dict[str, Callable[[str], object]] = {
    "seconds": seconds,
    "size": size,
    "int": whole,
    "fronts": fronts,
    "float": number,
    "bool": switch,
    "words": words,
    "hosts": hosts,
    "origins": origins,
    "str": str,
    "folder": folder,
    "pools": pools.parse,
    "workers": counts.parse,
    "amounts": amounts,
    "ports": ports,
    "devices": devices.parse,
}
