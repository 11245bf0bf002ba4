"""What the guard makes of what a script wants to connect to."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from panglot_worker.life.netguard import TIMEOUT, Guard
from panglot_worker.net.hosts import AddressRefused


class Sock:
    """As much of a socket as the guard looks at."""

    def __init__(self, family: int = socket.AF_INET) -> None:
        self.family = family
        self.type = socket.SOCK_STREAM
        self.timeout: Any = None

    def gettimeout(self) -> Any:
        return self.timeout

    def settimeout(self, seconds: float) -> None:
        self.timeout = seconds


class Names:
    """A resolver that answers the next of its lists every time it is asked."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    def __call__(self, host: str, port: Any, *_: Any, **__: Any) -> list[Any]:
        self.asked += 1
        answer = self.answers[min(self.asked, len(self.answers)) - 1]
        if not answer:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port or 0)) for address in answer]


def guard(*allowed: str, names: Any = None) -> Guard:
    refused: list[Any] = []
    made = Guard(allowed, lambda address, port: refused.append((address, port)))
    made.active = True
    made.seen = refused  # type: ignore[attr-defined]
    if names is not None:
        made._resolve = names
    return made


def checked(made: Guard, address: Any, sock: Any = None) -> Any:
    return made.checked(sock or Sock(), address)


def refuses(made: Guard, address: Any, sock: Any = None) -> bool:
    try:
        checked(made, address, sock)
    except AddressRefused:
        return True
    return False


def test_a_name_that_changes_its_mind_is_asked_once() -> None:
    """A resolver that answers public first and 127.0.0.1 second: the first answer is what is connected to."""
    names = Names(["93.184.216.34"], ["127.0.0.1"])
    made = guard(names=names)
    assert checked(made, ("rebinding.test", 80)) == ("93.184.216.34", 80)
    assert names.asked == 1
    assert refuses(made, ("rebinding.test", 80))


def test_one_forbidden_address_spoils_a_name() -> None:
    assert refuses(guard(names=Names(["93.184.216.34", "10.0.0.5"])), ("mixed.test", 80))


@pytest.mark.parametrize("spelt", ["127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0", "localhost", "127.0.0.1"])
def test_every_spelling_of_loopback(spelt: str) -> None:
    assert refuses(guard(), (spelt, 80))
    assert refuses(guard(), (spelt.encode(), 80))


@pytest.mark.parametrize("host", ["", "<broadcast>", "255.255.255.255"])
def test_every_and_no_machine(host: str) -> None:
    assert refuses(guard(), (host, 80))


ALLOWED = [
    (["127.0.0.1"], ("127.0.0.1", 80), True),
    (["127.0.0.1:80"], ("127.0.0.1", 80), True),
    (["127.0.0.1:80"], ("127.0.0.1", 81), False),
    (["127.0.0.1:80"], ("127.0.0.2", 80), False),
    (["[::1]:80"], ("::1", 80), True),
    (["[::1]"], ("::1", 81), True),
    (["::1"], ("::1", 81), True),
    (["other.test", "inner.test:90"], ("10.0.0.5", 90), True),
    (["inner.test:90"], ("10.0.0.5", 91), False),
    (["inner.test"], ("10.0.0.6", 90), False),
    (["INNER.test"], ("inner.TEST", 90), True),
]


@pytest.mark.parametrize(("allowed", "address", "expected"), ALLOWED)
def test_url_allow(allowed: list[str], address: Any, expected: bool) -> None:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    assert refuses(guard(*allowed, names=Names(["10.0.0.5"])), address, Sock(family)) is not expected


def test_an_allowed_name_that_cannot_be_found_allows_nothing() -> None:
    assert refuses(guard("gone.test", names=Names([])), ("10.0.0.5", 80))


def test_what_is_not_the_guards_business_passes_untouched() -> None:
    made = guard()
    unix = Sock(socket.AF_UNIX)
    for sock, address in (
        (unix, "/run/socket"),
        (unix, b"\0abstract"),
        (Sock(), "not a tuple"),
        (Sock(), (None, 80)),
        (Sock(), ("127.0.0.1",)),
    ):
        assert checked(made, address, sock) is address
    made.active = False
    address = ("127.0.0.1", 80)
    assert checked(made, address) is address


def test_a_socket_without_a_timeout_gets_one_and_others_keep_theirs() -> None:
    for timeout, after in ((None, TIMEOUT), (3.0, 3.0), (0.0, 0.0)):
        sock = Sock()
        sock.timeout = timeout
        checked(guard(), ("8.8.8.8", 80), sock)
        assert sock.timeout == after


def test_flow_and_scope_of_an_address_are_kept() -> None:
    assert checked(guard(), ("2606:4700:0::1111", 80, 0, 2), Sock(socket.AF_INET6)) == ("2606:4700::1111", 80, 0, 2)


def test_refusals_are_told() -> None:
    made = guard()
    assert refuses(made, ("127.0.0.1", 8080))
    assert made.seen == [("127.0.0.1", 8080)]  # type: ignore[attr-defined]
