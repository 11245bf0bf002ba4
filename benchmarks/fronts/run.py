"""How many requests a server with one, two and four fronts answers, beside mosec, in interleaved rounds.

It measures and never asserts: the exit code is 0, or 2 when something could not run. Run it on a machine with more
cores than workers and fronts; elsewhere only the CPU time per request says something.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import shlex
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "overhead")]

from cases import BARS, Case, cases  # noqa: E402
from contestants import panglot_command, python_folder  # noqa: E402
from load import LoadError, run_wrk  # noqa: E402
from measure import await_status, exchange, free_port, log_tail  # noqa: E402
from peers import MOSEC, UnavailableError, install  # noqa: E402
from processes import TICKS_PER_SECOND, CpuMeter, read_stat, running  # noqa: E402

WARM_UP_SECONDS = 2
START_SECONDS = 90.0


@dataclass(frozen=True)
class Contestant:
    """A server: how it is started, and whether it is Panglot."""

    name: str
    command: tuple[str, ...]
    """Before the flags of a case."""
    fronts: int = 0
    """0: it is mosec."""


@dataclass(frozen=True)
class Sample:
    """One contestant in one round of one case."""

    rate: float
    p50_ms: float
    p99_ms: float
    cpu_us: float
    """CPU time of all processes, for each request."""
    fronts_us: float
    busy: tuple[float, ...]
    """CPU seconds of each front, in a second."""
    faults: int


Results = dict[tuple[str, str], dict[int, Sample]]
"""By case and contestant, then by round."""


# Who is measured


def contestants(options: argparse.Namespace, failures: dict[str, str]) -> list[Contestant]:
    """Panglot with each number of fronts, another Panglot if one is given, and mosec if there is one."""
    panglot = panglot_command(options.panglot)
    everyone = [
        Contestant(f"{count} front{'s' * (count > 1)}", (*panglot, "serve"), count)
        for count in map(int, options.fronts.split(","))
    ]
    if options.before:
        everyone.append(Contestant("before", (*shlex.split(options.before), "serve"), 1))
    if options.no_mosec:
        return everyone
    try:
        everyone.append(Contestant("mosec", mosec_command(options.mosec)))
    except UnavailableError as error:
        failures["mosec"] = str(error)
    return everyone


def mosec_command(folder: str | None) -> tuple[str, ...]:
    """A Python that has mosec: this one with a folder that holds it, else one that is installed on first use."""
    if folder is not None:
        if not (Path(folder) / "mosec").is_dir():
            raise UnavailableError(f"{folder} holds no folder mosec")
        path = os.pathsep.join(filter(None, (str(Path(folder).resolve()), os.environ.get("PYTHONPATH", ""))))
        return ("env", f"PYTHONPATH={path}", sys.executable)
    install(MOSEC, str(python_folder() / "python"))
    return (str(MOSEC.environment / "bin" / "python"),)


def command_of(contestant: Contestant, case: Case, port: int) -> list[str]:
    if not contestant.fronts:
        address = ("--address", "127.0.0.1", "--port", str(port), "--log-level", "error")
        return [*contestant.command, *case.mosec, "--processes", str(case.workers), *address]
    flags = ["--workers", str(case.workers), "--host", "127.0.0.1", "--port", str(port), "--keep-alive", "10m"]
    # Another Panglot may not know the flag.
    flags += ["--fronts", str(contestant.fronts)] if contestant.fronts > 1 else []
    return [*contestant.command, str(case.package), *flags]


# Measuring


def await_workers(port: int, count: int) -> None:
    """Wait until so many workers are ready. Raises UnavailableError."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        workers = json.loads(exchange(port, "GET", "/status.json")[1])["workers"]
        if sum(worker["state"] == "ready" for worker in workers) >= count:
            return
        time.sleep(0.1)
    raise UnavailableError(f"not all of {count} workers were ready within {START_SECONDS:.0f} s")


def front_pids(contestant: Contestant, port: int, root: int) -> list[int]:
    """The processes that speak HTTP: of mosec the process that was started counts."""
    if contestant.fronts <= 1:
        return [root]
    return [front["pid"] for front in json.loads(exchange(port, "GET", "/status.json")[1])["fronts"]]


def ticks(pids: Sequence[int]) -> list[int]:
    stats = [read_stat(pid) for pid in pids]
    return [stat.ticks if stat is not None else 0 for stat in stats]


@contextlib.contextmanager
def others_filled(case: Case, port: int, fronts: int) -> Iterator[None]:
    """Hold idle connections on every front but one, so that all that come go to that one.

    Without load a call runs in the front of its connection; so the process that answers tells which front that is.
    """
    by_front: defaultdict[int, list[http.client.HTTPConnection]] = defaultdict(list)
    for _ in range(fronts * case.connections):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request("POST", "/predict", case.scenario.body, {"Content-Type": case.scenario.content_type})
        stat = read_stat(int(connection.getresponse().read()))
        by_front[stat.parent if stat is not None else 0].append(connection)
    try:
        for connection in by_front.pop(next(iter(by_front))):
            connection.close()
        time.sleep(0.5)
        yield
    finally:
        for connections in by_front.values():
            for connection in connections:
                connection.close()


def measure(contestant: Contestant, case: Case, options: argparse.Namespace, scratch: Path) -> Sample:
    """Start the server, wait for its workers, warm it up, load it, stop it. Raises UnavailableError."""
    port, scenario = free_port(), case.scenario
    log, body = scratch / "server.log", scratch / "body"
    body.write_bytes(scenario.body)
    path = "/predict" if contestant.fronts else "/inference"
    load = (f"http://127.0.0.1:{port}{path}", body, scenario.content_type, case.connections)
    try:
        with running(command_of(contestant, case, port), log, scratch) as process, contextlib.ExitStack() as held:
            if contestant.fronts:
                await_status(process, port, "GET", "/v2/health/ready", None)
                await_workers(port, case.workers)
            answer = await_status(process, port, "POST", path, scenario)
            if scenario.answer != b"?" and not scenario.echoed(answer):
                raise UnavailableError(f"a wrong answer: {answer[:100]!r}")
            if case.skewed:
                held.enter_context(others_filled(case, port, contestant.fronts))
            run_wrk(*load, WARM_UP_SECONDS, options.threads, close=case.close)
            pids = front_pids(contestant, port, process.pid)
            meter, before = CpuMeter(process.pid), ticks(pids)
            seen = run_wrk(*load, options.seconds, options.threads, close=case.close)
            used, after = meter.read(), ticks(pids)
    except (UnavailableError, LoadError, OSError, http.client.HTTPException) as error:
        raise UnavailableError(f"{error}{log_tail(log) if log.exists() else ''}") from error
    spent = [(now - then) / TICKS_PER_SECOND for now, then in zip(after, before, strict=True)]
    each = 1e6 / max(seen.requests, 1)
    return Sample(
        rate=seen.requests / seen.seconds,
        p50_ms=seen.p50_ms,
        p99_ms=seen.p99_ms,
        cpu_us=used.seconds * each,
        fronts_us=sum(spent) * each,
        busy=tuple(round(seconds / seen.seconds, 2) for seconds in spent),
        # A closed connection is what the case asks for: wrk counts some of them as read errors.
        faults=seen.non_2xx + used.ended + (0 if case.close else seen.socket_errors),
    )


def measure_all(
    everyone: Sequence[Contestant], chosen: Sequence[Case], options: argparse.Namespace, failures: dict[str, str]
) -> Results:
    """Every contestant in every case, one round after the other; each round begins with another contestant."""
    results: Results = {}
    with tempfile.TemporaryDirectory(prefix="fronts-") as scratch:
        for turn in range(options.rounds):
            start = turn % max(len(everyone), 1)
            for case in chosen:
                for contestant in [*everyone[start:], *everyone[:start]]:
                    title = f"{case.name}, {contestant.name}"
                    if title in failures or not (contestant.fronts or case.mosec):
                        continue
                    if case.skewed and contestant.fronts == 1:
                        continue
                    print(f"round {turn + 1} of {options.rounds}: {title}", file=sys.stderr, flush=True)
                    try:
                        sample = measure(contestant, case, options, Path(scratch))
                        results.setdefault((case.name, contestant.name), {})[turn] = sample
                    except UnavailableError as error:
                        failures[title] = str(error)
    return results


# Telling


def ratio(results: Results, subject: tuple[str, str], reference: tuple[str, str]) -> float | None:
    """The median of the rounds' own ratios of rates; None when no round has both."""
    above, below = results.get(subject, {}), results.get(reference, {})
    ratios = [above[turn].rate / below[turn].rate for turn in above.keys() & below.keys() if below[turn].rate]
    return statistics.median(ratios) if ratios else None


def show(results: Results, chosen: Sequence[Case]) -> None:
    """A table for each case: medians, and the rate as a multiple of one front's and of mosec's."""
    for case in chosen:
        print(f"\n{case.title}: {case.workers} workers, {case.connections} connections")
        print(f"{'':10}{'rate/s':>10}{'p50 ms':>9}{'p99 ms':>9}{'CPU us':>9}{'fronts us':>11}"
              f"{'to 1 front':>12}{'to mosec':>10}  fronts busy")  # fmt: skip
        for (name, contestant), rounds in results.items():
            if name != case.name:
                continue
            samples = list(rounds.values())
            rate, p50, p99, cpu, fronts = (
                statistics.median(getattr(sample, key) for sample in samples)
                for key in ("rate", "p50_ms", "p99_ms", "cpu_us", "fronts_us")
            )
            against = [ratio(results, (name, contestant), (name, other)) for other in ("1 front", "mosec")]
            words = [f"{value:.2f}" if value is not None else "-" for value in against]
            busy = " ".join(f"{share:.0%}" for share in samples[-1].busy)
            faults = sum(sample.faults for sample in samples)
            print(f"{contestant:10}{rate:10.0f}{p50:9.2f}{p99:9.2f}{cpu:9.1f}{fronts:11.1f}"
                  f"{words[0]:>12}{words[1]:>10}  {busy}", end="")  # fmt: skip
            print(f"  !!! {faults} faults" if faults else "")


def judge(results: Results) -> None:
    """Say of each bar that was measured whether it was met. They are for 16 cores."""
    print()
    for bar in BARS:
        value = ratio(results, (bar.case, bar.subject), (bar.reference_case or bar.case, bar.reference))
        if value is not None:
            against = f"{bar.reference}{f' {bar.reference_case}' if bar.reference_case else ''}"
            outcome = "met" if value >= bar.least else "MISSED"
            print(f"{outcome:7} {bar.case}: {bar.subject} to {against} {value:.2f}, at least {bar.least}")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    names = ",".join(case.name for case in cases())
    parser = argparse.ArgumentParser(prog="benchmarks/fronts/run.py", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="rounds to take the median of (default 3)")
    parser.add_argument("--seconds", type=int, default=5, help="length of one measurement (default 5)")
    parser.add_argument("--threads", type=int, default=4, help="threads of wrk (default 4)")
    parser.add_argument("--fronts", default="1,2,4", metavar="N,...", help="how many fronts (default 1,2,4)")
    parser.add_argument("--cases", default=names, metavar="NAME,...", help=f"which cases (default {names})")
    parser.add_argument("--panglot", metavar="COMMAND", help="the panglot to measure (default: beside Python)")
    parser.add_argument("--before", metavar="COMMAND", help="another panglot to measure beside it, with one front")
    parser.add_argument("--mosec", metavar="DIR", help="a folder with mosec for this Python (default: it is installed)")
    parser.add_argument("--no-mosec", action="store_true", help="measure without mosec")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write every figure of every round")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    if shutil.which("wrk") is None:
        print("wrk is not installed (apt-get install wrk)", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # So that servers are stopped on the way out.
    failures: dict[str, str] = {}
    chosen = [case for case in cases() if case.name in options.cases.split(",")]
    everyone = contestants(options, failures)
    results = measure_all(everyone, chosen, options, failures)
    print(f"\nmedians of {options.rounds} interleaved rounds of {options.seconds} s, {os.cpu_count()} CPUs")
    show(results, chosen)
    judge(results)
    for name, reason in failures.items():
        print(f"!!! {name} could not run: {reason}")
    if options.json:
        rounds = {
            f"{case}, {name}": {turn: asdict(sample) for turn, sample in each.items()}
            for (case, name), each in results.items()
        }
        options.json.write_text(json.dumps(rounds, indent=2) + "\n")
    return 2 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
