"""Hostile addresses, in a network namespace where only `lo` is and nothing can get out."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from support.namespace import run_inside

HOSTS = """\
127.0.0.1 localhost alias.test
93.184.216.34 public.test
10.0.0.5 inner.test
93.184.216.34 mixed.test
10.0.0.5 mixed.test
"""
ADDRESSES = (
    "10.0.0.5/32", "169.254.169.254/32", "192.168.1.1/32", "172.16.0.1/32", "100.64.0.1/32", "198.18.0.1/32",
    "192.0.2.1/32", "203.0.113.5/32", "93.184.216.34/32", "fd00::5/128", "fd00:ec2::254/128", "64:ff9b::7f00:1/128",
    "2002:7f00:1::1/128", "fec0::1/128", "2001::1/128", "2001:db8::5/128", "2606:2800:220:1::1/128",
)  # fmt: skip


@pytest.mark.timeout(180)
def test_in_a_namespace_with_lo_alone(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text(HOSTS)
    cases = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/fetching/namespace_cases.py"]
    done = run_inside(cases, hosts, ADDRESSES)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    found = re.search(r"(\d+) passed", done.stdout)
    assert found is not None
    assert int(found[1]) == 5
