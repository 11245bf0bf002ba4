"""What a key costs beside a token: one server has both, and clients with each of them take turns.

Two starts of the same server differ by a tenth and more in CPU time per request, so servers of their own, as in
`overhead`, cannot tell 1.00 from 1.05. A server with ten keys and one with 10,000 are each compared with the token on
the same server. It measures and never asserts.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
OVERHEAD = HERE.parent / "overhead"
sys.path.insert(0, str(OVERHEAD))

import secret_files  # noqa: E402
from contestants import panglot_command  # noqa: E402
from load import run_wrk, scenarios  # noqa: E402
from measure import await_status, free_port  # noqa: E402
from processes import TICKS_PER_SECOND, CpuMeter, read_stat, running  # noqa: E402

TOKEN, PLAIN, LIMITED = "token", "key", "key with limits"
SECRETS = {TOKEN: "token-of-the-server", PLAIN: "pgk-" + "plain" * 9, LIMITED: "pgk-" + "limited" * 6}
COUNTS = (10, 10_000)
"""How many keys a server has."""


def write(folder: Path, count: int) -> None:
    """The token, and a file of so many keys of which one has limits."""
    (folder / "token").write_text(SECRETS[TOKEN])
    (folder / "token").chmod(0o600)
    others = (f"{SECRETS[PLAIN]}{number}" for number in range(count - 2))
    entries = [secret_files.entry(number, secret) for number, secret in enumerate((SECRETS[PLAIN], *others))]
    entries.append(secret_files.entry(len(entries), SECRETS[LIMITED]) + secret_files.LIMITS)
    (folder / "keys.toml").write_text("\n".join(entries))


def ticks(pid: int) -> int:
    stat = read_stat(pid)
    return stat.ticks if stat is not None else 0


def one_server(options: argparse.Namespace, folder: Path) -> dict[str, list[tuple[float, float]]]:
    """CPU microseconds for each request, of the front and of all processes, by who asks and by turn."""
    scenario, port = scenarios()["json"], free_port()
    body = folder / "body"
    body.write_bytes(scenario.body)
    package = str(OVERHEAD / "packages" / "echo_single")
    closed = ("--token-file", str(folder / "token"), "--keys", str(folder / "keys.toml"))
    command = [*panglot_command(options.panglot), "serve", package, "--port", str(port), *closed]
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    with running(command, folder / "log", folder) as process:
        await_status(process, port, "GET", "/v2/health/ready", None)
        names = list(SECRETS)
        for turn in range(options.turns + 1):
            for name in names[turn % 3 :] + names[: turn % 3]:
                meter, before = CpuMeter(process.pid), ticks(process.pid)
                url = f"http://127.0.0.1:{port}/predict"
                seen = run_wrk(
                    url, body, scenario.content_type, 64, options.seconds, secret=SECRETS[name], close=options.close
                )
                used, front = meter.read().seconds, (ticks(process.pid) - before) / TICKS_PER_SECOND
                if seen.non_2xx or seen.socket_errors:
                    raise SystemExit(f"{name}: {seen.non_2xx} refused, {seen.socket_errors} errors")
                # The first turn is the warm-up.
                if turn:
                    found[name].append((1e6 * front / seen.requests, 1e6 * used / seen.requests))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--servers", type=int, default=3, help="servers of each number of keys (default 3)")
    parser.add_argument("--turns", type=int, default=6, help="turns on each server (default 6)")
    parser.add_argument("--seconds", type=int, default=2, help="length of one turn (default 2)")
    reason = "each request on a connection of its own, where no key is remembered"
    parser.add_argument("--close", action="store_true", help=reason)
    parser.add_argument("--panglot", metavar="COMMAND", help="the panglot to measure (default: beside Python)")
    options = parser.parse_args()
    ratios: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for number, count in enumerate(options.servers * COUNTS, 1):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write(folder, count)
            found = one_server(options, folder)
        for who in (PLAIN, LIMITED):
            ratios[f"{who}, of {count:,} keys,"] += [
                (own[0] / token[0], own[1] / token[1])
                for own, token in zip(found[who], found[TOKEN], strict=True)
            ]  # fmt: skip
        shown = ", ".join(f"{who} {statistics.median(use[1] for use in found[who]):.1f}" for who in SECRETS)
        print(f"server {number}, {count:,} keys: CPU us per request: {shown}", flush=True)
    for who, pairs in ratios.items():
        front, whole = (statistics.median(pair[at] for pair in pairs) for at in (0, 1))
        print(f"{who} to token: {whole:.3f} of the CPU time of all processes, {front:.3f} of the front's")


if __name__ == "__main__":
    main()
