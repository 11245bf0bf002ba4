"""What our stand-in for torchnvjpeg does on a GPU, and whether tiinfer's own PyTorch sample runs over it.

Needs CUDA, torch, torchvision, numpy and Pillow. Prints what it saw; the exit code is 1 when something was wrong.

    python benchmarks/gpu/torchnvjpeg_check.py [--document FILE]

FILE is the platform's document with the sample; without it `PANGLOT_SEED_DOCS` says where it lies, or that part is left
out. Where Panglot's own libraries are installed the sample is served over HTTP too.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SHIMS = ROOT / "src" / "panglot_worker" / "dialects" / "tiinfer" / "platform"
PICTURES = 24
SMOOTHED = 8
"""Decoders fill in colours between their samples differently, and much of a tiny picture lies between two."""
STOP = 60.0
"""Seconds a server may take to end."""


class Report:
    """Prints findings, and remembers whether all were well."""

    def __init__(self) -> None:
        self.well = True

    def say(self, text: str) -> None:
        print(f"      {text}", flush=True)

    def check(self, what: str, is_well: bool, detail: object = "") -> None:
        self.well = self.well and is_well
        print(f"{'ok   ' if is_well else 'WRONG'} {what}{f': {detail}' if detail != '' else ''}", flush=True)


def jpeg(seed: int, height: int, width: int, mode: str = "RGB") -> bytes:
    """A smooth picture, since two decoders agree on those but for rounding."""
    import numpy as np
    from PIL import Image

    random = np.random.default_rng(seed)
    coarse = Image.fromarray(random.integers(0, 256, (4, 4, 3), np.uint8))
    picture = coarse.resize((width, height), Image.Resampling.BICUBIC).convert(mode)
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=95)
    return buffer.getvalue()


def by_pillow(data: bytes) -> Any:
    import numpy as np
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"), dtype=np.int16)


# The decoder


def check_decoder(report: Report) -> None:
    import torch

    decoder = _shim().Decoder()
    for name, data in {
        "480 x 640": jpeg(1, 480, 640),
        "of odd sizes": jpeg(2, 333, 77),
        "grey": jpeg(3, 64, 48, "L"),
        "28 x 28": jpeg(4, 28, 28),
    }.items():
        decoded = decoder.decode(data)
        expected = by_pillow(data)
        report.check(f"decode, {name}: shape", tuple(decoded.shape) == expected.shape, tuple(decoded.shape))
        report.check(
            f"decode, {name}: device and type", decoded.is_cuda and decoded.dtype == torch.uint8, decoded.device
        )
        difference = abs(decoded.cpu().numpy().astype("int16") - expected)
        report.check(
            f"decode, {name}: Pillow's pixels",
            difference.mean() < (2 if min(difference.shape[:2]) > 32 else SMOOTHED),
            f"mean {difference.mean():.3f}, most {difference.max()}",
        )
    several = [jpeg(seed, 40 + seed, 60) for seed in range(5)]
    alone = [decoder.decode(data) for data in several]
    together = decoder.batch_decode(several)
    report.check("batch_decode gives what decode gives", all(map(torch.equal, alone, together)), len(together))
    for name, wrong in {"no picture": b"text", "an empty body": b""}.items():
        report.check(f"decode of {name}", *_raises(lambda wrong=wrong: decoder.decode(wrong)))
    report.say(f"decode of half a JPEG: {_raises(lambda: decoder.decode(jpeg(1, 64, 64)[:400]))[1]}")
    report.check("decode goes on after these", decoder.decode(several[0]).is_cuda)


def _shim() -> Any:
    spec = importlib.util.spec_from_file_location("torchnvjpeg", SHIMS / "fallback" / "torchnvjpeg.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _raises(call: Callable[[], Any]) -> tuple[bool, str]:
    try:
        return False, f"gave {tuple(call().shape)}"
    except RuntimeError as error:
        return True, f"RuntimeError: {str(error).splitlines()[0][:90]}"


def show_speed(report: Report) -> None:
    import torch

    decoder, data = _shim().Decoder(), jpeg(1, 480, 640)
    for name, call, count in (
        ("Pillow", lambda: by_pillow(data), 1),
        ("decode", lambda: decoder.decode(data), 1),
        ("batch_decode of 32", lambda: decoder.batch_decode([data] * 32), 32),
    ):
        call()
        torch.cuda.synchronize()
        began, rounds = time.perf_counter(), 0
        while time.perf_counter() - began < 2:
            call()
            rounds += 1
        torch.cuda.synchronize()
        took = (time.perf_counter() - began) / (rounds * count)
        report.say(f"{name}: {took * 1000:.3f} ms a picture of 480 x 640 ({len(data)} bytes)")


# The sample

DRIVE = """
import json, sys, urllib.request
import logging; logging.basicConfig(level=logging.INFO, stream=sys.stderr)
import model_service
model = model_service.MnistClassifyModel(sys.argv[1])
assert model.load(), "load() failed"
assert model.use_gpu and type(model.decoder).__module__ == "torchnvjpeg"
print("DECODER", sys.modules["torchnvjpeg"].__file__)
print("ANSWERS", json.dumps([model(json.loads(line)) for line in sys.stdin]))
"""


def write_sample(document: Path, folder: Path, report: Report) -> None:
    """The sample of the document, to the letter, with weights of no meaning."""
    import torch

    listings = document.read_text(encoding="utf-8").split("```")
    for name, place in (("model_service.py", 1), ("net.py", 3)):
        (folder / name).write_text(listings[place].lstrip("\n"), encoding="utf-8")
    if importlib.util.find_spec("cv2") is None:
        (folder / "cv2.py").write_text("")
        report.say(
            "OpenCV is not installed; the sample imports it, and uses it without a GPU only: an empty module stands in"
        )
    torch.manual_seed(0)
    (folder / "model").mkdir()
    torch.save(_net(folder).state_dict(), folder / "model" / "mnist_cnn.pt")


def _net(folder: Path) -> Any:
    spec = importlib.util.spec_from_file_location("net", folder / "net.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Net()


def expected(folder: Path, pictures: list[bytes]) -> list[int]:
    """What the sample should answer, worked out on the CPU from Pillow's pixels."""
    import torch
    from torchvision import transforms

    net = _net(folder)
    net.load_state_dict(torch.load(folder / "model" / "mnist_cnn.pt", map_location="cpu"))
    net.eval()
    shape = transforms.Compose([transforms.Resize((28, 28)), transforms.Grayscale()])
    answers = []
    for data in pictures:
        pixels = torch.tensor(by_pillow(data).astype("uint8")).permute((2, 0, 1))
        value = transforms.Normalize(0.1307, 0.3081)(shape(pixels).type(torch.float32) / 255)
        with torch.no_grad():
            answers.append(int(net(value.unsqueeze(0)).argmax(dim=1)[0]))
    return answers


def check_sample(document: Path, report: Report) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_sample(document, folder, report)
        pictures = [jpeg(seed, 40 + 3 * seed, 90 - seed) for seed in range(PICTURES)]
        wanted = expected(folder, pictures)
        requests = [{"images": [base64.b64encode(data).decode()]} for data in pictures]
        _compare("the sample by itself", _drive(folder, requests, report), wanted, report)
        try:
            with _served(folder) as url:
                _compare("the sample, served", [_ask(url, request) for request in requests], wanted, report)
                broken = _ask(url, {"images": [base64.b64encode(b"no picture").decode()]})
                report.check("no picture, served", broken == {"error": "preprocess failed"}, broken)
        except Unserved as error:
            report.say(f"not served over HTTP: {error}")


def _compare(what: str, answers: list[Any], wanted: list[int], report: Report) -> None:
    guesses = [answer.get("result", {}).get("pred", answer) for answer in answers]
    same = sum(map(lambda guess, right: guess == right, guesses, wanted))
    # Another decoder's rounding may turn a close call round.
    report.check(
        what, same >= len(wanted) - 1, f"{same} of {len(wanted)} answers are those of the CPU: {guesses[:8]} ..."
    )


def _drive(folder: Path, requests: list[dict[str, Any]], report: Report) -> list[Any]:
    places = [folder, SHIMS / "always", SHIMS / "fallback"]
    done = subprocess.run(
        [sys.executable, "-c", DRIVE, str(folder)], env=_environment(*places), cwd=folder,
        input="\n".join(map(json.dumps, requests)), capture_output=True, text=True, check=False,
    )  # fmt: skip
    lines = dict(line.split(" ", 1) for line in done.stdout.splitlines() if line.startswith(("DECODER ", "ANSWERS ")))
    report.check(
        "the sample loads and takes our torchnvjpeg", done.returncode == 0, lines.get("DECODER", done.stderr[-800:])
    )
    return json.loads(lines["ANSWERS"]) if "ANSWERS" in lines else []


def _environment(*places: Path) -> dict[str, str]:
    """This process's environment, with these places first on the path of imports."""
    path = [*map(str, places), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}


class Unserved(Exception):
    """The server did not come up; says why."""


@contextlib.contextmanager
def _served(folder: Path) -> Iterator[str]:
    """The address of `panglot tiinfer` on the folder. Raises Unserved."""
    server = subprocess.Popen(
        [sys.executable, "-m", "panglot", "tiinfer", "--port", "0"], cwd=folder, text=True,
        env=_environment(ROOT / "src"), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    assert server.stderr is not None
    lines: list[str] = []
    try:
        for line in server.stderr:
            lines.append(line.rstrip())
            if "is ready on" in line:
                yield line.partition("is ready on ")[2].split()[0]
                break
        else:
            raise Unserved(lines[-1] if lines else "it said nothing")
    finally:
        server.terminate()
        server.communicate(timeout=STOP)


def _ask(url: str, request: dict[str, Any]) -> Any:
    head = {"Content-Type": "application/json"}
    with urllib.request.urlopen(
        urllib.request.Request(f"{url}/inference", json.dumps(request).encode(), head)
    ) as answer:
        return json.load(answer)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--document", type=Path, help="the platform's document with the sample")
    document = parser.parse_args().document
    import torch
    import torchvision

    report = Report()
    if not torch.cuda.is_available():
        print("there is no GPU here that torch can use")
        return 1
    report.say(f"torch {torch.__version__}, torchvision {torchvision.__version__}, {torch.cuda.get_device_name(0)}")
    check_decoder(report)
    show_speed(report)
    if document is None and os.environ.get("PANGLOT_SEED_DOCS"):
        document = next(Path(os.environ["PANGLOT_SEED_DOCS"]).glob("000_*.txt"), None)
    if document is None:
        report.say("the sample was left out: --document says where the platform's document is")
    else:
        check_sample(document, report)
    print("all well" if report.well else "something was wrong")
    return 0 if report.well else 1


if __name__ == "__main__":
    sys.exit(main())
