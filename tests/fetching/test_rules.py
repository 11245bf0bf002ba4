"""Which addresses may be fetched: the rules alone, without a network."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panglot.fetching.addresses import all_public, is_public, same
from panglot.fetching.urls import Allowed, Refused, Target, parse, redirected
from panglot_worker import netguard

NONE = Allowed()

PUBLIC = (
    "93.184.216.34", "8.8.8.8", "1.1.1.1", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1", "192.0.1.1",
    "198.17.0.1", "198.20.0.1", "223.255.255.255", "2606:2800:220:1::1", "2a00:1450::1", "::ffff:8.8.8.8",
    "64:ff9b::808:808", "2400:cb00::1",
)  # fmt: skip
NOT_PUBLIC = (
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.0.1",
    "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.88.99.1", "192.168.0.1",
    "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.1.1.1", "240.0.0.1",
    "255.255.255.255", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:100.64.0.1",
    "::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::1", "2002:7f00:1::1", "2002:808:808::1",
    "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:db8::1", "2001:10::1", "3fff::1", "fe80::1", "fe80::1%lo",
    "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1", "100::1", "4000::1", "1::1", "", "localhost", "127.1", "1.2.3",
    "0177.0.0.1", "8.8.8.8%lo", "2a00:1450::1%eth0",
)  # fmt: skip


@pytest.mark.parametrize("address", PUBLIC)
def test_addresses_of_the_public_internet(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_115_to_118_addresses_that_are_not(address: str) -> None:
    assert not is_public(address)


def test_122_one_bad_address_spoils_all() -> None:
    assert all_public(["8.8.8.8", "1.1.1.1"])
    assert not all_public(["8.8.8.8", "127.0.0.1"])
    assert not all_public(["::1", "8.8.8.8"])


@given(st.ip_addresses())
def test_the_worker_s_guard_has_the_same_rule(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    """They are two pieces of code, since the worker runs on other interpreters."""
    assert is_public(str(address)) == netguard.is_public(str(address))


@given(st.ip_addresses(v=4))
def test_ipv4_inside_ipv6_is_what_it_stands_for(address: ipaddress.IPv4Address) -> None:
    assert is_public(f"::ffff:{address}") == is_public(str(address))
    assert is_public(str(ipaddress.IPv6Address((0x64FF9B << 96) + int(address)))) == is_public(str(address))
    assert not is_public(str(ipaddress.IPv6Address((0x2002 << 112) + (int(address) << 80))))


def test_spellings_of_one_address() -> None:
    assert same("::1", "0:0:0:0:0:0:0:1")
    assert not same("8.8.8.8", "8.8.4.4")
    assert not same("8.8.8.8", "?")


# URLs

GOOD = {
    "http://example.org": Target("http", "example.org", 80, "/"),
    "https://example.org/a/b?c=d&e": Target("https", "example.org", 443, "/a/b?c=d&e"),
    "http://EXAMPLE.Org:80/": Target("http", "example.org", 80, "/"),
    "http://example.org:443/": Target("http", "example.org", 443, "/"),
    "http://example.org?x": Target("http", "example.org", 80, "/?x"),
    "http://8.8.8.8/": Target("http", "8.8.8.8", 80, "/"),
    "http://[2a00:1450::1]/": Target("http", "2a00:1450::1", 80, "/"),
    "http://a_b.example.org/%00": Target("http", "a_b.example.org", 80, "/%00"),
}


@pytest.mark.parametrize("url", GOOD)
def test_plain_urls(url: str) -> None:
    assert parse(url, NONE) == GOOD[url]
    assert parse(GOOD[url].url, NONE) == GOOD[url]


BAD = (
    # 115, 118: numbers that are no plain addresses
    "http://127.1/", "http://2130706433/", "http://0x7f000001/", "http://0177.0.0.1/", "http://0/", "http://0x7f.1/",
    "http://1.2.3/", "http://256.1.1.1/", "http://1.2.3.4.5/", "http://[::1%25lo]/", "http://[::1%lo]/", "http://[]/",
    "http://[127.0.0.1]/", "http://[::g]/", "http://①②⑦.0.0.1/",
    # 119: spellings
    "http://user@example.org/", "http://user:pass@example.org/", "http://example.org\\@127.0.0.1/",
    "http://example.org#@127.0.0.1/", "http://example.org/#a", "http://exa\tmple.org/", "http://exa\nmple.org/",
    "http://example.org/\0", "http://example.org/ ", " http://example.org/", "http://example。org/",
    "http://ｅxample.org/", "http://xn--bcher-kva.example/", "http://example.org./", "http://.example.org/",
    "http://example..org/", "http://-example.org/", "http://example.org-/", "HTTP://example.org/", "Http://example.org/",
    "http://exa%6dple.org/", "http://exam!ple.org/", "http:///", "http://:80/", "http://example.org:80:80/",
    "http://" + "a" * 64 + ".org/", "http://" + "a." * 127 + "org/", "http://localhost\\.example.org/",
    # 120: ports
    "http://example.org:0/", "http://example.org:22/", "http://example.org:25/", "http://example.org:6379/",
    "http://example.org:65536/", "http://example.org:-1/", "http://example.org:/", "http://example.org:8080/",
    "http://example.org:080x/", "http://example.org:99999/", "http://example.org:٨٠/",
    # 123: other schemes
    "file:///etc/passwd", "ftp://example.org/", "gopher://example.org/", "data:,x", "javascript:alert(1)",
    "//example.org/", "", "http:", "http://", "http:/example.org/", "http:example.org", "https:///example.org", "unix:///x",
    "ws://example.org/",
    "http://example.org/" + "a" * 2048, "http" * 262144,
)  # fmt: skip


@pytest.mark.parametrize("url", BAD, ids=[url[:40] for url in BAD])
def test_115_to_123_what_is_not_fetched(url: str) -> None:
    with pytest.raises(Refused):
        parse(url, NONE)


@given(st.text(max_size=60) | st.text("htps:/[]@.0123456789abx%\\#?-", max_size=40).map("http://".__add__))
def test_whatever_is_accepted_is_plain(text: str) -> None:
    """What the parser accepts has one reading: rebuilt, it is the same again."""
    try:
        found = parse(text, NONE)
    except Refused:
        return
    assert parse(found.url, NONE) == found
    assert found.port in (80, 443)
    assert not set(found.host) & set("@/\\%#? ")


# url_allow


def test_an_allowed_host_may_have_any_address_and_port() -> None:
    allowed = Allowed(["models.internal", "127.0.0.1:9000", "[::1]:80", "xn--bcher-kva.example"])
    assert parse("http://models.internal:6379/", allowed).free
    assert parse("http://MODELS.internal/", allowed).free
    assert parse("http://127.0.0.1:9000/", allowed).free
    assert not parse("http://127.0.0.1/", allowed).free
    assert parse("http://[::1]/", allowed).free
    assert parse("http://xn--bcher-kva.example/", allowed).free
    for other in ("http://127.0.0.1:9001/", "http://xmodels.internal:6379/", "http://models.internal.org:81/"):
        with pytest.raises(Refused):
            parse(other, allowed)


# Redirects

FROM = Target("https", "example.org", 443, "/a/b?c")
TO = {
    "https://other.org/x": "https://other.org/x",
    "//other.org/x": "https://other.org/x",
    "/x": "https://example.org/x",
    "x": "https://example.org/a/x",
    "?d": "https://example.org/a/?d",
    "https://other.org/x#part": "https://other.org/x",
}


@pytest.mark.parametrize("location", TO)
def test_121_where_redirects_lead(location: str) -> None:
    assert redirected(FROM, location, NONE).url == TO[location]


NOWHERE = (
    "", "http://other.org/", "file:///etc/passwd", "gopher://x/", "data:,x", "javascript:x", "https://user@other.org/",
    "https://other.org:22/", "https://127.1/", "//user:pass@other.org/", "/\\other.org", "x y", "https://other.org/\x00",
    "a" * 3000, "mailto:x",
)  # fmt: skip


@pytest.mark.parametrize("location", NOWHERE, ids=[text[:30] for text in NOWHERE])
def test_121_redirects_that_are_not_followed(location: str) -> None:
    with pytest.raises(Refused):
        redirected(FROM, location, NONE)
