"""Whether model files of PyTorch answer on a GPU as on the CPU, through real servers.

A TorchScript file and a `torch.export` file are served with `--device cpu` and `--device cuda:0`. Both are asked over
`/predict`, by many clients at once, and over `/v2`. Of the TorchScript file one output says where it ran.

    python benchmarks/gpu/bare_check.py [ROWS]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

WIDTH, CLASSES = 64, 10
TOLERANCE = 1e-4
"""By which part of the largest value answers may differ: a GPU adds up in another order."""
PORT = 18379
INPUTS = f'[[inputs]]\nname = "x"\ndatatype = "FP32"\nshape = [-1, {WIDTH}]\n'


def write_models(folder: Path) -> list[Path]:
    """One net, in both formats."""
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Linear(WIDTH, 256)
            self.last = torch.nn.Linear(256, CLASSES)

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            on_gpu = torch.full((x.size(0), 1), float(x.is_cuda), device=x.device)
            shifted = x + torch.arange(x.size(1), device=x.device) / x.size(1)
            return torch.softmax(self.last(torch.relu(self.first(shifted))), dim=1), on_gpu

    torch.manual_seed(7)
    net = Net().eval()
    script = folder / "script" / "model.pt"
    script.parent.mkdir()
    torch.jit.script(net).save(str(script))
    (script.parent / "panglot.toml").write_text(INPUTS)
    exported = folder / "exported" / "model.pt2"
    exported.parent.mkdir()
    rows = torch.export.Dim("rows", min=1, max=1024)
    torch.export.save(torch.export.export(net, (torch.zeros(2, WIDTH),), dynamic_shapes={"x": {0: rows}}), exported)
    return [script, exported]


def answers(file: Path, device: str, rows: list[list[float]]) -> dict[str, Any]:
    """What the file answers on a device: each row alone, by many clients at once, and all of them in one request."""
    command = [sys.executable, "-m", "panglot", "serve", str(file.parent), "--port", str(PORT), "--device", device]
    with subprocess.Popen(command, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True) as server:
        lines: list[str] = []
        assert server.stdout
        reader = threading.Thread(target=lambda pipe: lines.extend(pipe), args=(server.stdout,))
        reader.start()
        try:
            wait_until_ready(server, lines)
            began = time.monotonic()
            with ThreadPoolExecutor(16) as crowd:
                alone = list(crowd.map(lambda row: ask("/predict", {"x": [row]}), rows))
            took = time.monotonic() - began
            tensor = {"name": "x", "datatype": "FP32", "shape": [len(rows), WIDTH], "data": rows}
            model = ask("/v2/repository/index", {})[0]["name"]
            together = ask(f"/v2/models/{model}/infer", {"inputs": [tensor]})
            return {"alone": alone, "together": together, "ms": took * 1000 / len(rows)}
        finally:
            server.terminate()
            reader.join(30)
            print("".join(line for line in lines if "share" in line or "device" in line).rstrip())


def wait_until_ready(server: subprocess.Popen[str], lines: list[str]) -> None:
    """Raises SystemExit with the server's own words when it ends instead."""
    deadline = time.monotonic() + 180
    while server.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/v2/health/ready", timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    server.terminate()
    server.wait(30)
    raise SystemExit("the server did not become ready:\n" + "".join(lines))


def ask(path: str, value: Any) -> Any:
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", json.dumps(value).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=90) as reply:
            return json.loads(reply.read())
    except urllib.error.HTTPError as error:
        raise SystemExit(f"{path}: {error.code} {error.read().decode()[:300]}") from None


def flat(said: dict[str, Any]) -> tuple[list[float], list[float], set[float]]:
    """The probabilities of all rows alone and together, and where the model says it ran."""
    alone = [value for answer in said["alone"] for value in answer["output_0"][0]]
    outputs = {output["name"]: output["data"] for output in said["together"]["outputs"]}
    ran = {answer["output_1"][0][0] for answer in said["alone"]} | set(outputs["output_1"])
    return alone, outputs["output_0"], ran


def differ(some: list[float], others: list[float]) -> float:
    return max(abs(first - second) for first, second in zip(some, others, strict=True)) / max(map(abs, others))


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    rows = [[((at * 7919 + place * 104729) % 2000) / 1000 - 1 for place in range(WIDTH)] for at in range(count)]
    wrong = False
    with tempfile.TemporaryDirectory() as folder:
        for file in write_models(Path(folder)):
            on_cpu, on_gpu = (answers(file, device, rows) for device in ("cpu", "cuda:0"))
            expected, _, where = flat(on_cpu)
            alone, together, there = flat(on_gpu)
            apart = max(differ(alone, expected), differ(together, expected))
            # An exported program says for ever what was true when it was exported.
            ran = where == {0.0} and there == ({1.0} if file.suffix == ".pt" else {0.0})
            good = ran and apart <= TOLERANCE
            wrong = wrong or not good
            print(f"{file.name}: {count} rows, CPU {on_cpu['ms']:.1f} ms and GPU {on_gpu['ms']:.1f} ms per request, "
                  f"answers differ by {apart:.1e} of the largest; "
                  f"{'good' if good else 'WRONG'}")  # fmt: skip
    sys.exit(wrong)


if __name__ == "__main__":
    main()
