"""The rules on addresses alone, without a network; the same on every interpreter."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panglot_worker.net.addresses import all_public, is_loopback, is_public, read, same, spelt
from panglot_worker.net.hosts import AddressRefused, Allowed, entry
from panglot_worker.net.urls import Url, check_addresses, parse, redirected
from support.addresses import BAD_URLS, FORBIDDEN, GOOD_URLS, LISTED, NO_ENTRIES, NOT_PLAIN, PUBLIC, WITH_A_ZONE

NONE = Allowed()
EVERY = ("http", "https", "rtsp", "rtsps")


# Addresses


@pytest.mark.parametrize("address", PUBLIC)
def test_addresses_of_the_public_internet(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("address", [*FORBIDDEN, *WITH_A_ZONE, *NOT_PLAIN])
def test_addresses_that_are_not(address: str) -> None:
    assert not is_public(address)


def test_one_bad_address_spoils_all() -> None:
    assert all_public(["8.8.8.8", "1.1.1.1"])
    assert not all_public(["8.8.8.8", "127.0.0.1"])
    assert not all_public(["::1", "8.8.8.8"])


@given(st.ip_addresses())
def test_every_address_has_one_spelling(address: Any) -> None:
    found = read(str(address))
    assert found == address
    assert spelt(found) == spelt(address)
    assert same(spelt(address), address.exploded)
    assert is_public(spelt(address)) == is_public(address.exploded)


@given(st.ip_addresses(v=4))
def test_ipv4_inside_ipv6_is_what_it_stands_for(address: ipaddress.IPv4Address) -> None:
    assert is_public(f"::ffff:{address}") == is_public(str(address))
    assert is_public(str(ipaddress.IPv6Address((0x64FF9B << 96) + int(address)))) == is_public(str(address))
    assert not is_public(str(ipaddress.IPv6Address((0x2002 << 112) + (int(address) << 80))))


def test_spellings_of_one_address() -> None:
    assert same("::1", "0:0:0:0:0:0:0:1")
    assert not same("8.8.8.8", "8.8.4.4")
    assert not same("8.8.8.8", "?")
    assert not same("?", "?")


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "0:0::1"])
def test_loopback(address: str) -> None:
    assert is_loopback(address)


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "10.0.0.1", "::127.0.0.1", "128.0.0.1", "::1%lo", "127.1", ""])
def test_not_loopback(address: str) -> None:
    assert not is_loopback(address)


# URLs

PLAIN = {
    "http://example.org": Url("http", "example.org", 80, "/"),
    "https://example.org/a/b?c=d&e": Url("https", "example.org", 443, "/a/b?c=d&e"),
    "http://EXAMPLE.Org:80/": Url("http", "example.org", 80, "/"),
    "http://example.org:443/": Url("http", "example.org", 443, "/"),
    "http://example.org?x": Url("http", "example.org", 80, "/?x"),
    "http://8.8.8.8/": Url("http", "8.8.8.8", 80, "/"),
    "http://[2A00:1450:0::1]/": Url("http", "2a00:1450::1", 80, "/"),
    "http://a_b.example.org/%00": Url("http", "a_b.example.org", 80, "/%00"),
}


@pytest.mark.parametrize("url", PLAIN)
def test_plain_urls(url: str) -> None:
    assert parse(url, NONE) == PLAIN[url]
    assert parse(PLAIN[url].url, NONE) == PLAIN[url]


@pytest.mark.parametrize("schemes", [EVERY[:2], EVERY], ids=["fetcher", "video"])
def test_what_is_asked_and_what_is_not(schemes: Any) -> None:
    for url in GOOD_URLS:
        check_addresses(parse(url, NONE, schemes), [parse(url, NONE, schemes).host])
    for url in BAD_URLS:
        with pytest.raises(AddressRefused):
            pytest.fail(f"{url[:80]!r} was read as {parse(url, NONE, schemes)!r}")


RTSP = {
    "rtsp://8.8.8.8/live": Url("rtsp", "8.8.8.8", 554, "/live"),
    "rtsp://user:pass@8.8.8.8:554": Url("rtsp", "8.8.8.8", 554, "/", user="user:pass"),
}


RTSPS = {
    "rtsps://8.8.8.8/live": Url("rtsps", "8.8.8.8", 322, "/live"),
    "rtsps://user:pass@8.8.8.8:322": Url("rtsps", "8.8.8.8", 322, "/", user="user:pass"),
}


@pytest.mark.parametrize("url", RTSPS)
def test_rtsps_has_port_322_and_users(url: str) -> None:
    assert parse(url, NONE, EVERY) == RTSPS[url]
    for other in ("rtsps://8.8.8.8:443/", "rtsps://8.8.8.8:554/", "rtsp://8.8.8.8:322/", "RTSPS://8.8.8.8/"):
        with pytest.raises(AddressRefused):
            parse(other, NONE, EVERY)


@pytest.mark.parametrize("url", RTSP)
def test_only_rtsp_has_port_554_and_users(url: str) -> None:
    assert parse(url, NONE, EVERY) == RTSP[url]
    for other in (url.replace("rtsp", "http"), "rtsp://8.8.8.8:80/", "rtsp://8.8.8.8:443/", "rtsp://@8.8.8.8/"):
        with pytest.raises(AddressRefused):
            parse(other.replace("http://8.8.8.8/", "http://8.8.8.8:554/"), NONE, EVERY)
    with pytest.raises(AddressRefused):
        parse(url, NONE)


@given(st.text(max_size=60) | st.text("htps:/[]@.0123456789abx%\\#?-", max_size=40).map("http://".__add__))
def test_whatever_is_accepted_is_plain(text: str) -> None:
    """What the parser accepts has one reading: rebuilt, it is the same again."""
    try:
        found = parse(text, NONE)
    except AddressRefused:
        return
    assert parse(found.url, NONE) == found
    assert found.port in (80, 443)
    assert not set(found.host) & set("@/\\%#? ")


# url_allow


@pytest.mark.parametrize(("url", "listed", "expected"), LISTED)
def test_an_allowed_host_may_have_any_address_and_port(url: str, listed: str, expected: bool) -> None:
    try:
        found = parse(url, Allowed([listed]))
        # Names in the list lead to loopback.
        check_addresses(found, [found.host if read(found.host) else "127.0.0.1"])
    except AddressRefused:
        assert not expected
    else:
        assert expected


def test_names_that_are_listed() -> None:
    allowed = Allowed(["models.internal", "xn--bcher-kva.example"])
    assert parse("http://models.internal:6379/", allowed).free
    assert parse("http://MODELS.internal/", allowed).free
    assert parse("http://xn--bcher-kva.example/", allowed).free
    for other in ("http://xmodels.internal:6379/", "http://models.internal.org:81/"):
        with pytest.raises(AddressRefused):
            parse(other, allowed)


@pytest.mark.parametrize("text", NO_ENTRIES)
def test_what_cannot_be_listed(text: str) -> None:
    with pytest.raises(AddressRefused):
        entry(text)


# Redirects

FROM = Url("https", "example.org", 443, "/a/b?c")
TO = {
    "https://other.org/x": "https://other.org/x",
    "//other.org/x": "https://other.org/x",
    "/x": "https://example.org/x",
    "x": "https://example.org/a/x",
    "x,y": "https://example.org/a/x,y",
    "?d": "https://example.org/a/?d",
    "https://other.org/x#part": "https://other.org/x",
}


@pytest.mark.parametrize("location", TO)
def test_where_redirects_lead(location: str) -> None:
    assert redirected(FROM, location, NONE).url == TO[location]


NOWHERE = (
    "", "http://other.org/", "file:///etc/passwd", "gopher://x/", "data:,x", "javascript:x", "https://user@other.org/",
    "https://other.org:22/", "https://127.1/", "//user:pass@other.org/", "/\\other.org", "x y", "https://other.org/\x00",
    "a" * 3000, "mailto:x", "rtsp://other.org/", "https://other.org:554/",
)  # fmt: skip


@pytest.mark.parametrize("location", NOWHERE, ids=[text[:30] for text in NOWHERE])
def test_redirects_that_are_not_followed(location: str) -> None:
    with pytest.raises(AddressRefused):
        redirected(FROM, location, NONE)
