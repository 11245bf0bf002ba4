"""Addresses and URLs of every kind, and what becomes of them: one corpus for every user of the rules.

Runs on CPython 3.8, as the worker's tests do.
"""

from __future__ import annotations

PUBLIC = (
    "93.184.216.34", "8.8.8.8", "1.1.1.1", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1", "192.0.1.1",
    "192.169.0.1", "198.17.0.1", "198.20.0.1", "223.255.255.255", "2606:2800:220:1::1", "2606:4700::1111",
    "2a00:1450::1", "2001:4860:4860::8888", "2400:cb00::1", "::ffff:8.8.8.8", "64:ff9b::808:808", "64:ff9b::8.8.8.8",
    "2001:200::1", "3ffe::1", "2606:4700:0:0:0:0:0:1111", "2606:4700:0000::0:1111",
)  # fmt: skip
"""Of the public internet, one by one up to the borders of what is not."""

FORBIDDEN = (
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.1.2.3",
    "127.255.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.9", "192.0.0.10",
    "192.0.2.1", "192.88.99.1", "192.168.0.1", "192.168.1.1", "198.18.0.1", "198.19.255.255", "198.51.100.7",
    "203.0.113.9", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::127.0.0.1", "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:100.64.0.1",
    "::ffff:169.254.169.254", "::ffff:0:127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a00:1",
    "64:ff9b:1::1", "64:ff9b:1::808:808", "100::1", "100:0:0:1::1", "1::1", "2001::1", "2001:1::1", "2001:1::2",
    "2001:3::1", "2001:4:112::1", "2001:10::1", "2001:20::1", "2001:30::1", "2001:1ff::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:db8::1", "2002:7f00:1::1", "2002:808:808::", "3fff::1",
    "3fff:fff::1", "4000::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1",
)  # fmt: skip
"""Of no use outside, or said to lead inside. CPythons from 3.8 to 3.14 differ on several of them."""

WITH_A_ZONE = (
    "fe80::1%lo", "fe80::1%1", "::1%lo", "2606:4700::1111%eth0", "2a00:1450::1%lo", "2a00:1450::1%1", "8.8.8.8%lo",
    "::ffff:8.8.8.8%lo",
)  # fmt: skip
"""Never public, whatever stands before the sign."""

NOT_PLAIN = (
    "", "localhost", "127.1", "1.2.3", "2130706433", "0x7f000001", "0177.0.0.1", "08.8.8.8", "8.8.8.08", "8.8.8.8.",
    "256.1.1.1", "1.2.3.4.5", " 8.8.8.8", "8.8.8.8 ", "8.8.8.8\n", "8.8.8.8\0", "٨.8.8.8", "::g", "1:2", ":::", "[::1]",
    "::ffff:08.8.8.8", "1:2:3:4:5:6:7:8:9", "2606:4700::1111::", "2606:4700::11111", "no address",
)  # fmt: skip
"""Not the one spelling of an address; some libraries read one all the same."""

GOOD_URLS = (
    "http://8.8.8.8", "http://8.8.8.8/", "https://8.8.8.8/a/b?c=d&e", "http://8.8.8.8:80/", "http://8.8.8.8:443/",
    "https://8.8.8.8:80/", "http://8.8.8.8?x", "http://[2606:4700::1111]/", "http://[2606:4700:0::1111]:443/",
    "http://[::ffff:8.8.8.8]/", "http://8.8.8.8/%00", "http://8.8.8.8/@x", "http://8.8.8.8/?a@b:c",
)  # fmt: skip
"""Asked by whoever fetches; numbers, so that nobody needs to look up a name."""

BAD_URLS = (
    # Numbers that are no plain addresses.
    "http://127.1/", "http://2130706433/", "http://134744072/", "http://0x08080808/", "http://0x7f000001/",
    "http://0177.0.0.1/", "http://010.8.8.8/", "http://0/", "http://0x7f.1/", "http://1.2.3/", "http://256.1.1.1/",
    "http://1.2.3.4.5/", "http://[::1%25lo]/", "http://[::1%lo]/", "http://[2606:4700::1111%eth0]/",
    "http://[2606:4700::1111%25eth0]/", "http://[]/", "http://[8.8.8.8]/", "http://[127.0.0.1]/", "http://[::g]/",
    "http://[:]/", "http://2606:4700::1111/", "http://①②⑦.0.0.1/", "http://8.8.8.8./",
    # Spellings with two readings.
    "http://user@8.8.8.8/", "http://@8.8.8.8/", "http://:@8.8.8.8/", "http://user:pass@8.8.8.8/",
    "http://8.8.8.8\\@127.0.0.1/", "http://8.8.8.8#@127.0.0.1/", "http://8.8.8.8/#a", "http://exa\tmple.org/",
    "http://exa\nmple.org/", "http://8.8.8.8/\0", "http://8.8.8.8/ ", " http://8.8.8.8/", "http://example。org/",
    "http://ｅxample.org/", "http://xn--bcher-kva.example/", "http://example.org./", "http://.example.org/",
    "http://example..org/", "http://-example.org/", "http://example.org-/", "HTTP://8.8.8.8/", "Http://8.8.8.8/",
    "http://exa%6dple.org/", "http://exam!ple.org/", "http:///", "http://:80/", "http://8.8.8.8:80:80/",
    "http://" + "a" * 64 + ".org/", "http://" + "a." * 127 + "org/", "http://localhost\\.example.org/",
    # Ports.
    "http://8.8.8.8:0/", "http://8.8.8.8:22/", "http://8.8.8.8:25/", "http://8.8.8.8:554/", "https://8.8.8.8:554/",
    "http://host.test:554/", "http://8.8.8.8:6379/", "http://8.8.8.8:65536/", "http://8.8.8.8:-1/",
    "http://8.8.8.8:/", "http://8.8.8.8:8080/", "http://8.8.8.8:080x/", "http://8.8.8.8:99999/", "http://8.8.8.8:٨٠/",
    # Other schemes.
    "file:///etc/passwd", "ftp://8.8.8.8/", "gopher://8.8.8.8/", "data:,x", "javascript:alert(1)", "//8.8.8.8/", "",
    "http:", "http://", "http:/8.8.8.8/", "http:8.8.8.8", "https:///8.8.8.8", "unix:///x", "ws://8.8.8.8/",
    "http://8.8.8.8/" + "a" * 2048, "http" * 262144,
)  # fmt: skip
"""Asked by nobody."""

LISTED = (
    ("http://127.0.0.1/", "127.0.0.1", True),
    ("http://127.0.0.1:9000/", "127.0.0.1", True),
    ("http://127.0.0.1:9000/", "127.0.0.1:9000", True),
    ("http://127.0.0.1:9001/", "127.0.0.1:9000", False),
    ("http://127.0.0.1/", "127.0.0.1:9000", False),
    ("http://127.0.0.2/", "127.0.0.1", False),
    ("http://[::1]/", "::1", True),
    ("http://[::1]:9000/", "[::1]:9000", True),
    ("http://[0:0::1]:9000/", "[::1]", True),
    ("http://[::1]:9000/", "[0:0:0:0:0:0:0:1]", True),
    ("http://[::1]:9000/", "[::1]:80", False),
    ("http://8.8.8.8:554/", "8.8.8.8", True),
    ("http://8.8.8.8:554/", "8.8.8.8:554", True),
    ("http://8.8.8.8:554/", "8.8.8.8:555", False),
    ("http://LOCALHOST:9000/", "localhost", True),
    ("http://localhost:9000/", "LocalHost:9000", True),
    ("http://localhost/", "host", False),
    ("http://user@127.0.0.1/", "127.0.0.1", False),
    ("http://127.1/", "127.0.0.1", False),
)
"""A URL, what `url_allow` lists, and whether it is asked."""

NO_ENTRIES = (
    "http://a.test/", "a.test:0", "a.test:99999", "a.test:", "a b", "a.test/x", "127.1", "0x7f000001", "[::g]", "[::1",
    "[a.test]", "[127.0.0.1]", "::1]", "user@a.test", "a..test", "*.a.test", "", ":80", "fe80::1%lo", "a.test:80:80",
    "a.test:٨٠",
)  # fmt: skip
"""What `url_allow` cannot list."""
