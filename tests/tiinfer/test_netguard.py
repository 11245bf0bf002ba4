"""What scripts may connect to, in a network namespace where only `lo` is and nothing can get out."""

from __future__ import annotations

import errno
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.namespace import run_inside
from support.server import ROOT, serving
from support.side_by_side import differs
from support.tiinfer import last_line, run

HOSTS = """\
127.0.0.1 localhost
93.184.216.34 public.test
10.0.0.5 inner.test
93.184.216.34 mixed.test
10.0.0.5 mixed.test
"""
ADDRESSES = ("10.0.0.5/32", "169.254.169.254/32", "93.184.216.34/32", "fd00::5/128")


@pytest.mark.timeout(180)
def test_in_a_namespace_with_lo_alone(tmp_path: Path) -> None:
    differs("Addresses in requests")
    hosts = tmp_path / "hosts"
    hosts.write_text(HOSTS)
    cases = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/tiinfer/namespace_cases.py"]
    done = run_inside(cases, hosts, ADDRESSES)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    found = re.search(r"(\d+) passed", done.stdout)
    assert found is not None
    assert int(found[1]) > 20


def test_none_where_the_kernel_says_no() -> None:
    """A process that may not leave its network says so, and the server ends."""
    limit = "echo 0 > /proc/sys/user/max_net_namespaces"
    serve = f"{sys.executable} -m panglot tiinfer tests/packages/tiinfer_fetch --port 0 --worker-net none"
    forbid = ["unshare", "-U", "-r", "sh", "-c"]
    if subprocess.run([*forbid, limit], capture_output=True).returncode:
        pytest.skip("this machine does not let the test forbid namespaces")
    done = subprocess.run([*forbid, f"{limit} && {serve}"], capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert done.returncode == 3, done.stderr
    line = last_line(done.stderr)
    assert "--worker-net none: this machine does not let a process leave the network" in line
    assert "--worker-net guard" in line


LEAVE = """
import socket
from panglot_worker.life import netguard
netguard.leave_network()
try:
    socket.create_connection(("127.0.0.1", 80))
except OSError as error:
    import os
    print(os.getuid(), os.getgid(), error.errno)
"""


def test_none_as_an_ordinary_user() -> None:
    """Without a privilege a process leaves by a user namespace, in which it keeps its ids."""
    ordinary = ["unshare", "-U", "--map-user=1000", "--map-group=1000"]
    if subprocess.run([*ordinary, "unshare", "-U", "-n", "true"], capture_output=True).returncode:
        pytest.skip("this machine lets no ordinary user have a namespace")
    done = subprocess.run(
        [*ordinary, sys.executable, "-c", LEAVE], env={"PYTHONPATH": str(ROOT / "src")}, capture_output=True, text=True
    )
    assert done.stdout.split() == ["1000", "1000", str(errno.ENETUNREACH)], done.stderr


WRONG = {
    ("--worker-net", "shut"): "expected one of guard, open, none",
    ("--url-allow", "http://a.test/"): "is no host; write name, name:port or [address]:port",
    ("--url-allow", "a.test:99999"): "is no host",
    ("--url-allow", "a b"): "is no host",
    ("--worker-net", "none", "--inline"): "--worker-net none needs a process of its own",
}


@pytest.mark.parametrize("flags", WRONG, ids=" ".join)
def test_wrong_uses(flags: tuple[str, ...]) -> None:
    done = run("serve", "tests/packages/tiinfer_fetch", "--port", "0", *flags)
    assert done.returncode == 3
    assert WRONG[flags] in last_line(done.stderr)


SYNC = "import urllib.request\ndef predict(request):\n    return urllib.request.urlopen(request).status\n"
ASYNC = """
import asyncio

async def predict(request):
    await asyncio.open_connection('127.0.0.1', request)
    return 200
"""


@pytest.mark.parametrize(("script", "asks_port"), [(SYNC, False), (ASYNC, True)], ids=["sync", "async"])
def test_any_dialect_may_have_the_guard(script: str, asks_port: bool, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(script)
    for rule, status in (("guard", 500), ("open", 200)):
        with serving(tmp_path, "--worker-net", rule) as server:
            where = server.port if asks_port else f"{server.url}/v2/health/live"
            assert server.predict(where).status_code == status
            assert server.metric("panglot_worker_net_refused_total") == (rule == "guard")


def test_inline_says_that_it_does_not_guard() -> None:
    with serving("tiinfer_ops", "--inline") as server:
        server.wait_log("the script's connections are not guarded in this process; they are without --inline")
        assert server.client.post("/inference", json={"a": 1}).json() == {"a": 1}
