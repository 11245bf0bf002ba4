"""What an ensemble of three steps costs, with tensors of 600 kB, beside three requests and beside one script.

CPU per request. Rounds are interleaved, and ratios are taken inside each round. It measures and never asserts.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "overhead"))

from measure import await_status, free_port  # noqa: E402
from processes import CpuMeter, running  # noqa: E402

SHAPE = [3, 224, 224]
WORKS = {"copy": "every step adds 1", "image": "normalize, tanh, softmax"}
STEPS = ("first", "second", "third")
TENSOR = 'name: "%s" data_type: TYPE_FP32 dims: [3, 224, 224]'


def write_model(folder: Path, name: str, work: str, steps: str) -> None:
    """A model of the repository that does some of the three steps."""
    (folder / name / "1").mkdir(parents=True)
    (folder / name / "1" / "model.py").write_text((HERE / "model.py").read_text())
    parameters = "".join(
        f'parameters {{ key: "{key}" value: {{ string_value: "{value}" }} }}\n'
        for key, value in (("work", work), ("steps", steps))
    )
    text = f'backend: "python"\ninput {{ {TENSOR % "X"} }}\noutput {{ {TENSOR % "Y"} }}\n{parameters}'
    (folder / name / "config.pbtxt").write_text(text)


def write_repository(folder: Path, work: str) -> None:
    for number, name in enumerate(STEPS):
        write_model(folder, name, work, str(number))
    write_model(folder, "script", work, "012")
    names = ("X", "between1", "between2", "Y")
    steps = "".join(
        f'step {{ model_name: "{name}" model_version: -1 input_map {{ key: "X" value: "{names[at]}" }} '
        f'output_map {{ key: "Y" value: "{names[at + 1]}" }} }}\n'
        for at, name in enumerate(STEPS)
    )
    (folder / "ensemble" / "1").mkdir(parents=True)
    text = f'platform: "ensemble"\ninput {{ {TENSOR % "X"} }}\noutput {{ {TENSOR % "Y"} }}\n'
    (folder / "ensemble" / "config.pbtxt").write_text(f"{text}ensemble_scheduling {{ {steps} }}\n")


def write_body(path: Path) -> int:
    """The body of a request; how long its JSON is."""
    values = SHAPE[0] * SHAPE[1] * SHAPE[2]
    raw = struct.pack(f"<{values}f", *(at % 256 for at in range(values)))
    about = {"name": "X", "datatype": "FP32", "shape": SHAPE, "parameters": {"binary_data_size": len(raw)}}
    text = json.dumps({"inputs": [about], "parameters": {"binary_data_output": True}}).encode()
    path.write_bytes(text + raw)
    return len(text)


def asked(port: int, model: str, body: Path, length: int, connections: int, seconds: int) -> int:
    """Ask a model for some seconds; how often it answered."""
    wrk = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", str(HERE.parent / "tensors" / "post.lua")]
    wrk += [f"http://127.0.0.1:{port}/v2/models/{model}/infer", "--", str(body), str(length)]
    said = subprocess.run(wrk, capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in said or "Socket errors" in said:
        raise SystemExit(said)
    return int(re.search(r"(\d+) requests in", said)[1])  # type: ignore[index]


def round_of(work: str, connections: int, seconds: int, scratch: Path, panglot: str) -> dict[str, float]:
    """CPU microseconds of the server's whole process tree per request, by model."""
    folder, body = scratch / work, scratch / "body"
    if not folder.exists():
        write_repository(folder, work)
    length, port = write_body(body), free_port()
    command = [panglot, "-m", "panglot", "serve", "--models", str(folder), "--port", str(port)]
    figures = {}
    with running(command, scratch / "log", scratch) as process:
        await_status(process, port, "GET", "/v2/health/ready", None)
        for model in ("ensemble", "script", *STEPS):
            asked(port, model, body, length, connections, 1)
            meter = CpuMeter(process.pid)
            count = asked(port, model, body, length, connections, seconds)
            figures[model] = meter.read().seconds / max(count, 1) * 1e6
    figures["three requests"] = sum(figures[step] for step in STEPS)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--only", choices=WORKS, help="this work alone")
    parser.add_argument("--python", default=sys.executable, help="whose panglot is measured (default: this one's)")
    options = parser.parse_args()
    for work in [options.only] if options.only else WORKS:
        with tempfile.TemporaryDirectory() as folder:
            rounds = [
                round_of(work, options.connections, options.seconds, Path(folder), options.python)
                for _ in range(options.rounds)
            ]
        print(f"{WORKS[work]}:")
        for name in ("ensemble", "three requests", "script"):
            values = [figures[name] for figures in rounds]
            ratio = statistics.median(figures["ensemble"] / figures[name] for figures in rounds)
            spread = f"[{min(values):.0f} to {max(values):.0f}]"
            beside = f"  ensemble: {ratio:.2f} x" if name != "ensemble" else ""
            print(f"  {name:15} {statistics.median(values):7.0f} us/request {spread:>16}{beside}", flush=True)


if __name__ == "__main__":
    main()
