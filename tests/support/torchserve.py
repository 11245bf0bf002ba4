"""TorchServe under test: archives as its archiver makes them, calls of its gRPC service, and the server itself."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import httpx

from panglot.dialects.torchserve.rpc.management import MESSAGES
from panglot_worker.tensors import protobuf
from support import environments, originals
from support.originals import Original
from support.ports import free_port
from support.server import wait_until

SERVICE = "/org.pytorch.serve.grpc.inference.InferenceAPIsService/"
MANAGEMENT = "/org.pytorch.serve.grpc.management.ManagementAPIsService/"
FORMATS = {".mar": "default", ".gz": "tgz", "": "no-archive"}
"""The archiver's names of its formats, by the endings of what it makes."""
STUBS = {
    "captum/__init__.py": "",
    "captum/attr.py": """
class IntegratedGradients:
    def __init__(self, *arguments):
        pass


LayerIntegratedGradients = TokenReferenceBase = IntegratedGradients
""",
    "torchvision/__init__.py": """
import importlib.util
import os
import sys
from importlib.machinery import PathFinder

import torch

here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def load():
    spec = PathFinder.find_spec("torchvision", [path for path in sys.path if os.path.abspath(path) != here])
    sys.modules["torchvision"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


try:
    load()
except RuntimeError:
    for name in ("nms", "qnms"):
        torch.library.define("torchvision::" + name, "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    load()
""",
}
"""What handlers of pictures and texts import. The original needs captum to begin with, for explanations alone; and a
torchvision whose compiled part is one for another torch is not imported without help."""


def manifest(handler: str, name: str, version: str = "1.0", **more: str) -> str:
    model = {"modelName": name, "handler": handler, "modelVersion": version, **more}
    table = {"createdOn": "16/09/2024 12:00:00", "runtime": "python", "model": model, "archiverVersion": "0.12.0"}
    return json.dumps(table, indent=2)


def archive(folder: Path, target: Path, handler: str, version: str = "1.0", **more: str) -> Path:
    """The files of a folder as an archive: a .mar, a .tar.gz, or a folder, by the ending of `target`."""
    name = target.name.partition(".")[0]
    files = {file.name: file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file()}
    files.pop("README.md", None)
    files["MAR-INF/MANIFEST.json"] = manifest(handler, name, version, **more).encode()
    if target.suffix == ".mar":
        with zipfile.ZipFile(target, "w") as made:
            for path, content in files.items():
                made.writestr(path, content)
        return target
    unpacked = target if not target.suffix else target.parent / f".{name}"
    for path, content in files.items():
        (unpacked / path).parent.mkdir(parents=True, exist_ok=True)
        (unpacked / path).write_bytes(content)
    if target.suffix:
        with tarfile.open(target, "w:gz") as made_tar:
            made_tar.add(unpacked, ".")
    return target


def really_archived(folder: Path, target: Path, handler: str, version: str = "1.0", **options: str) -> Path:
    """What torch-model-archiver makes of a folder: a .mar, a .tar.gz, or a folder, by the ending of `target`.

    `options` are its further options, such as `serialized_file`, by the names of files in the folder; what none of
    them names, and what is no handler either, are extra files.
    """
    python = environments.python_with("torch-model-archiver-0.12.0", "torch-model-archiver==0.12.0")
    script = handler.partition(":")[0].removesuffix(".py") + ".py"
    named_handler = str(folder / handler) if (folder / script).is_file() else handler
    named = {script, *options.values()}
    files = (file for file in sorted(folder.iterdir()) if file.name not in {"README.md", "__pycache__", *named})
    extra = ",".join(str(file) for file in files)
    flags = {
        "model-name": target.name.partition(".")[0], "version": version, "handler": named_handler,
        "export-path": str(target.parent), "archive-format": FORMATS[target.suffix],
        **({"extra-files": extra} if extra else {}),
        **{name.replace("_", "-"): str(folder / file) for name, file in options.items()},
    }  # fmt: skip
    command = [python, "-m", "model_archiver.model_packaging", "--force"]
    done = subprocess.run(
        [*command, *(part for name, value in flags.items() for part in (f"--{name}", value))],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert target.exists(), done.stderr
    return target


# gRPC


def prediction(model: str, version: str = "", sequence: str = "", **inputs: bytes) -> bytes:
    """A PredictionsRequest."""
    entries = [protobuf.message(3, protobuf.text(1, key) + protobuf.message(2, value)) for key, value in inputs.items()]
    return (
        protobuf.text(1, model)
        + (protobuf.text(2, version) if version else b"")
        + b"".join(entries)
        + protobuf.text(4, sequence)
    )


def manage(address: str, method: str, token: str, **fields: Any) -> Any:
    """What the management service says; for a call that fails, its status and sentence."""
    names = [field.split() for field in MESSAGES[f"{method}Request"]]
    numbers = {name: int(number) for name, number, _ in names}
    message = b"".join(
        protobuf.text(numbers[name], value) if isinstance(value, str) else bytes((numbers[name] << 3, value))
        for name, value in fields.items()
    )
    (answer,) = _called(address, MANAGEMENT + method, iter([message]), token) or [b""]
    return answer if isinstance(answer, tuple) else _first(answer).decode()


def stream(address: str, messages: Iterable[bytes], token: str = "") -> list[Any]:
    """The whole answers to the messages of a StreamPredictions2, and the end of a call that fails."""
    return _called(address, SERVICE + "StreamPredictions2", iter(messages), token)


def _called(address: str, path: str, messages: Iterator[bytes], token: str) -> list[Any]:
    metadata = [("authorization", f"Bearer {token}")] if token else None
    said: list[Any] = []
    with grpc.insecure_channel(address) as channel:
        try:
            said.extend(channel.stream_stream(path)(messages, metadata=metadata, timeout=60))
        except grpc.RpcError as error:
            said.append((error.code().name, error.details()))
    return said


def call(address: str, method: str, message: bytes, token: str = "") -> Any:
    """The first fields of the answers to a call; for one that fails, its status and sentence."""
    metadata = [("authorization", f"Bearer {token}")] if token else None
    with grpc.insecure_channel(address) as channel:
        # Every method is read as a stream: one answer is a stream of one.
        calling = channel.unary_stream(SERVICE + method)
        try:
            return [_first(answer) for answer in calling(message, metadata=metadata, timeout=60)]
        except grpc.RpcError as error:
            return error.code().name, error.details()


def _first(message: bytes) -> bytes:
    return next((bytes(content) for number, _, content in protobuf.fields(memoryview(message)) if number == 1), b"")


# The original


def stubs(folder: Path) -> Path:
    """A folder for PYTHONPATH, with what handlers import and the tests' environment lacks."""
    for name, text in STUBS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@dataclass(frozen=True)
class TorchServe:
    """A running TorchServe."""

    rest: Original
    grpc: str
    token: str
    management: str
    """The address of its management API; and of that over gRPC, and the token of both."""
    grpc_management: str
    management_token: str

    def is_ready(self, model: str) -> bool:
        """Whether a worker of the model answers; what it answers is the handler's affair."""
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = httpx.get(f"{self.rest.url}/predictions/{model}", headers=headers, timeout=30)
        return "has no worker" not in answer.text and answer.status_code != 404


@contextlib.contextmanager
def original(
    store: Path, folder: Path, models: Mapping[str, str], stubs: Path | None = None, properties: str = ""
) -> Iterator[TorchServe]:
    """TorchServe 0.12.0 with archives of a store, by name; it wants its token, which it writes to a file.

    `properties` are further lines of its config.properties.
    """
    config, rpc, rpc_management, management = folder / "config.properties", free_port(), free_port(), free_port()
    lines = (
        f"management_address=http://127.0.0.1:{management}", f"metrics_address=http://127.0.0.1:{free_port()}",
        f"grpc_inference_port={rpc}", f"grpc_management_port={rpc_management}", "enable_model_api=true",
        "inference_address=http://127.0.0.1:PORT", "default_workers_per_model=1", properties,
    )  # fmt: skip
    (folder / "config.properties.in").write_text("\n".join(lines))
    env = environments.over_ours("torchserve-0.12.0", "torchserve==0.12.0", "torch-model-archiver==0.12.0")
    # Its frontend starts `python` of the path, and reads the port from the file.
    starter = f"sed s/PORT/{originals.PORT}/ {config}.in > {config} && exec {sys.executable} -m ts.model_server"
    named = " ".join(f"{name}={file}" for name, file in models.items())
    command = f"{starter} --start --foreground --ncs --model-store {store} --models {named} --ts-config {config}"
    variables = {
        "PYTHONPATH": os.pathsep.join((env["PYTHONPATH"], *([str(stubs)] if stubs else []))),
        "PATH": os.pathsep.join((os.path.dirname(sys.executable), env["PATH"])),
        # Where it notes that it runs, and has the sockets of its workers: another may run beside it.
        "TMPDIR": str(folder),
        "TEMP": str(folder),
    }
    with originals.running(["sh", "-c", command], folder, "/ping", env=variables, seconds=240) as running:
        keys = json.loads((folder / "key_file.json").read_text())
        served = TorchServe(
            running, f"127.0.0.1:{rpc}", keys["inference"]["key"], f"http://127.0.0.1:{management}",
            f"127.0.0.1:{rpc_management}", keys["management"]["key"],
        )  # fmt: skip
        for name in models:
            wait_until(lambda name=name: served.is_ready(name), 120, lambda: f"not ready:\n{running.log}")  # type: ignore[misc]
        yield served
