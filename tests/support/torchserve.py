"""TorchServe under test: archives as its archiver makes them, calls of its gRPC service, and the server itself."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import httpx

from panglot_worker.tensors import protobuf
from support import environments, originals
from support.originals import Original
from support.server import wait_until

SERVICE = "/org.pytorch.serve.grpc.inference.InferenceAPIsService/"
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


# gRPC


def prediction(model: str, version: str = "", **inputs: bytes) -> bytes:
    """A PredictionsRequest."""
    entries = [protobuf.message(3, protobuf.text(1, key) + protobuf.message(2, value)) for key, value in inputs.items()]
    return protobuf.text(1, model) + (protobuf.text(2, version) if version else b"") + b"".join(entries)


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

    def is_ready(self, model: str) -> bool:
        """Whether a worker of the model answers; what it answers is the handler's affair."""
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = httpx.get(f"{self.rest.url}/predictions/{model}", headers=headers, timeout=30)
        return "has no worker" not in answer.text and answer.status_code != 404


@contextlib.contextmanager
def original(store: Path, folder: Path, models: Mapping[str, str], stubs: Path | None = None) -> Iterator[TorchServe]:
    """TorchServe 0.12.0 with archives of a store, by name; it wants its token, which it writes to a file."""
    config, rpc = folder / "config.properties", free_port()
    lines = (
        *(f"{name}=http://127.0.0.1:{free_port()}" for name in ("management_address", "metrics_address")),
        f"grpc_inference_port={rpc}", f"grpc_management_port={free_port()}",
        "inference_address=http://127.0.0.1:PORT", "default_workers_per_model=1",
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
    }
    with originals.running(["sh", "-c", command], folder, "/ping", env=variables) as running:
        keys = json.loads((folder / "key_file.json").read_text())
        served = TorchServe(running, f"127.0.0.1:{rpc}", keys["inference"]["key"])
        for name in models:
            wait_until(lambda name=name: served.is_ready(name), 120, lambda: f"not ready:\n{running.log}")  # type: ignore[misc]
        yield served


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
