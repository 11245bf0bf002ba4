"""The variables called PANGLOT_...: settings, those of Kubernetes, and unknown ones. Does no I/O.

Kubernetes gives every container variables for each Service of its namespace. Those of a Service called `panglot`, or
`panglot-workers`, look like settings: PANGLOT_PORT=tcp://10.0.0.1:80, PANGLOT_WORKERS_SERVICE_HOST=10.0.0.1.
"""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping

from panglot.settings.names import variable

PREFIX = "PANGLOT_"
SECRETS = ("PANGLOT_TOKEN", "PANGLOT_METRICS_TOKEN", "PANGLOT_ADMIN_TOKEN", "PANGLOT_WEBHOOK_SECRET")
"""Variables with tokens. No process that runs code of a package gets them."""
ELSEWHERE = frozenset({*SECRETS, "PANGLOT_SEED_DOCS", "PANGLOT_SOAK"})
"""Variables that are no settings: they are read where they are needed."""


def given(environ: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """The setting, the variable and its text, for each variable PANGLOT_... that is not of Kubernetes."""
    for key, text in environ.items():
        if key.startswith(PREFIX) and key not in ELSEWHERE and not is_of_kubernetes(key, text):
            yield key.removeprefix(PREFIX).lower(), key, text


def without_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment for a process that runs code of a package: without the server's tokens."""
    return {key: text for key, text in environ.items() if key not in SECRETS}


def unknown(environ: Mapping[str, str], known: Iterable[str], others: Mapping[str, str]) -> tuple[str, ...]:
    """A sentence about every variable that is no setting of the package, with the one it may have been meant to be.

    `others` are the settings of other dialects, each with the names of its dialects.
    """
    names = list(known)
    return tuple(
        f"{key} is for {others[name]} packages and has no effect here"
        if name in others
        else f"{key} is no setting and has no effect; the nearest is {_nearest(name, names)}"
        for name, key, _ in given(environ)
        if name not in names
    )


def _nearest(name: str, known: list[str]) -> str:
    return variable(difflib.get_close_matches(name, known, n=1, cutoff=0)[0])


def is_of_kubernetes(key: str, text: str) -> bool:
    """Whether name and text together are what Kubernetes writes for a Service; either alone is not enough."""
    return any(name.search(key) and fits(text) for name, fits in OF_A_SERVICE)


def _is_url(text: str) -> bool:
    """As in tcp://10.0.0.1:80 and udp://[fd00::1]:53."""
    match = re.fullmatch(r"(?:tcp|udp|sctp)://(\[[^\]]*:[^\]]*\]|[^:[]*):([^:]*)", text)
    return match is not None and _is_address(match[1].strip("[]")) and _is_port(match[2])


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and 0 < int(text) < 65536


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_protocol(text: str) -> bool:
    return text in ("tcp", "udp", "sctp")


OF_A_SERVICE = tuple(
    (re.compile(f"_{name}$"), fits)
    for name, fits in (
        ("SERVICE_HOST", _is_address),
        ("SERVICE_PORT(_[A-Z0-9_]+)?", _is_port),
        ("PORT", _is_url),
        ("PORT_[0-9]+_(TCP|UDP|SCTP)", _is_url),
        ("PORT_[0-9]+_(TCP|UDP|SCTP)_PROTO", _is_protocol),
        ("PORT_[0-9]+_(TCP|UDP|SCTP)_PORT", _is_port),
        ("PORT_[0-9]+_(TCP|UDP|SCTP)_ADDR", _is_address),
    )
)
"""How the names of a Service's variables end, and a test for their values."""
