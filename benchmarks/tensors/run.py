"""CPU per request with tensors, over REST and gRPC, beside a bare uvicorn that echoes the same bytes.

Every round measures all of them one after the other; the table has the medians. It measures and never asserts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "overhead"))

from measure import free_port  # noqa: E402
from processes import CpuMeter, running  # noqa: E402

from panglot_worker.tensors import protobuf  # noqa: E402

CONNECTIONS = 64
SMALL, LARGE = 64, 150_000
"""Floats in a request: 64, and 600 kB of them."""


@dataclass(frozen=True)
class Case:
    """One measurement. Without a model it is the bare server."""

    title: str
    floats: int
    form: str
    model: str = ""
    against: str = ""


CASES = (
    Case("uvicorn echo, JSON 64 floats", SMALL, "json"),
    Case("REST JSON 64 floats, predict_batch", SMALL, "json", "rows", "uvicorn echo, JSON 64 floats"),
    Case("REST JSON 64 floats, predict", SMALL, "json", "whole", "uvicorn echo, JSON 64 floats"),
    Case("uvicorn echo, binary 64 floats", SMALL, "binary"),
    Case("REST binary 64 floats, predict", SMALL, "binary", "whole", "uvicorn echo, binary 64 floats"),
    Case("uvicorn echo, 600 kB", LARGE, "binary"),
    Case("REST binary 600 kB, predict", LARGE, "binary", "whole", "uvicorn echo, 600 kB"),
    Case("grpc.aio echo, 64 floats", SMALL, "grpc", against="uvicorn echo, binary 64 floats"),
    Case("gRPC 64 floats, predict", SMALL, "grpc", "whole", "uvicorn echo, binary 64 floats"),
    Case("gRPC 600 kB, predict", LARGE, "grpc", "whole", "uvicorn echo, 600 kB"),
)


def body_of(case: Case) -> tuple[bytes, int]:
    """The body of a request, and how long its JSON is; 0 where that is all of it."""
    values = [at / 7 for at in range(case.floats)]
    raw = struct.pack(f"<{case.floats}f", *values)
    about: dict[str, object] = {"name": "x", "datatype": "FP32", "shape": [1, case.floats]}
    if case.form == "grpc":
        inside = protobuf.text(1, "x") + protobuf.text(2, "FP32") + protobuf.packed(3, (1, case.floats))
        return protobuf.text(1, case.model) + protobuf.message(5, inside) + protobuf.message(7, raw), 0
    if case.form == "json":
        return json.dumps({"inputs": [{**about, "data": [round(value, 6) for value in values]}]}).encode(), 0
    about["parameters"] = {"binary_data_size": len(raw)}
    text = json.dumps({"inputs": [about], "parameters": {"binary_data_output": True}}).encode()
    return text + raw, len(text)


def command(case: Case, port: int, grpc_port: int) -> list[str]:
    if not case.model and case.form == "grpc":
        return [sys.executable, str(HERE / "grpc_echo.py"), str(grpc_port), "aio"]
    if not case.model:
        return [sys.executable, str(HERE.parent / "overhead" / "floor.py"), str(port)]
    package = HERE / "packages" / f"{case.model}.py"
    serve = [sys.executable, "-m", "panglot", "serve", str(package), "--port", str(port)]
    return [*serve, "--grpc-port", str(grpc_port)] if case.form == "grpc" else serve


def await_port(port: int, path: str) -> None:
    """Wait until a server answers 200, or has no such path but answers."""
    for _ in range(600):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
                if answer.status == 200:
                    return
        except urllib.error.HTTPError as error:
            if error.code in (404, 405, 500):
                return
        except OSError:
            pass
        time.sleep(0.05)
    raise SystemExit(f"nothing answers on port {port}")


def load(case: Case, port: int, grpc_port: int, scratch: Path, seconds: int) -> int:
    """Ask for some seconds; how often it was answered."""
    body, length = body_of(case)
    if case.form == "grpc":
        return asyncio.run(load_grpc(body, grpc_port, seconds))
    file = scratch / "body"
    file.write_bytes(body)
    path = f"/v2/models/{case.model}/infer" if case.model else "/raw"
    wrk = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-s", str(HERE / "post.lua")]
    wrk += [f"http://127.0.0.1:{port}{path}", "--", str(file), str(length)]
    said = subprocess.run(wrk, capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in said:
        raise SystemExit(said)
    return int(re.search(r"(\d+) requests in", said)[1])  # type: ignore[index]


async def load_grpc(body: bytes, port: int, seconds: int) -> int:
    """The same over gRPC, by so many callers on four connections."""
    import grpc

    until, done = time.monotonic() + seconds, 0
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]
    channels = [grpc.aio.insecure_channel(f"127.0.0.1:{port}", options) for _ in range(4)]
    calls = [channel.unary_unary("/inference.GRPCInferenceService/ModelInfer") for channel in channels]

    async def ask(at: int) -> None:
        nonlocal done
        while time.monotonic() < until:
            await calls[at % len(calls)](body, wait_for_ready=True)
            done += 1

    await asyncio.gather(*(ask(at) for at in range(CONNECTIONS)))
    for channel in channels:
        await channel.close()
    return done


def measured(case: Case, seconds: int, scratch: Path) -> float:
    """CPU microseconds of the server's whole process tree per request."""
    port, grpc_port = free_port(), free_port()
    with running(command(case, port, grpc_port), scratch / "log", scratch) as process:
        if case.model or case.form != "grpc":
            await_port(port, "/v2/health/ready" if case.model else "/")
        load(case, port, grpc_port, scratch, 1)
        meter = CpuMeter(process.pid)
        count = load(case, port, grpc_port, scratch, seconds)
        spent, *_ = meter.read()
    return spent * 1e6 / max(count, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--only", default="", help="cases whose title has this, and those they are held against")
    options = parser.parse_args()
    chosen = {title for case in CASES if options.only in case.title for title in (case.title, case.against)}
    cases = [case for case in CASES if case.title in chosen]
    figures: dict[str, list[float]] = {case.title: [] for case in cases}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            for case in cases:
                figures[case.title].append(measured(case, options.seconds, Path(folder)))
    for case in cases:
        cost = statistics.median(figures[case.title])
        ratio = f"{cost / statistics.median(figures[case.against]):.2f}" if case.against else ""
        print(f"{case.title:40} {cost:10.0f} us {ratio:>8}")


if __name__ == "__main__":
    main()
