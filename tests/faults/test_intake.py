"""While a script runs a batch the next one is decoded, on another thread: nothing of it is the script's to notice."""

from __future__ import annotations

import hashlib
import json
import random
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from support.evals import single
from support.server import Server, serving
from support.wire import Wire

SCRIPT = """
import hashlib, os, threading, time
from panglot import File

def where():
    return threading.current_thread() is threading.main_thread()

class Model:
    def preprocess(self, item):
        return item, where()

    def predict_batch(self, items):
        time.sleep(0.005)
        child = os.fork() if len(items) == 1 else 0
        if child:
            os.waitpid(child, 0)
        elif len(items) == 1:
            os._exit(0)
        if any(isinstance(item, dict) and item.get("crash") for item, _ in items):
            os._exit(9)
        names = [thread.name for thread in threading.enumerate()]
        return [(item, main and where(), names) for item, main in items]

    def postprocess(self, result):
        item, main, names = result
        told = hashlib.md5(item.view).hexdigest() if isinstance(item, File) else item
        return {"told": told, "main": main and where(), "threads": names}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("meanwhile")
    (folder / "model.py").write_text(SCRIPT)
    quick = ("--restart-delay", "0.05", "--restart-delay-max", "0.1", "--poison-deaths", "0")
    with serving(str(folder), "--max-batch", "4", *quick) as server:
        yield server


class Client(threading.Thread):
    """Sends JSON, bodies in shared memory and what is no JSON, and looks at every answer."""

    def __init__(self, server: Server, seed: int) -> None:
        super().__init__()
        self.server, self.chance = server, random.Random(seed)
        self.threads: set[str] = set()
        self.wrong: list[str] = []
        self.crashed = 0

    def run(self) -> None:
        with Wire(self.server, patience=60) as client:
            for number in range(40):
                self.ask(client, number)

    def ask(self, client: Wire, number: int) -> None:
        kind = self.chance.choice(["json", "file", "file", "bad"])
        value: object = {"number": number}
        if kind == "json" and self.chance.random() < 0.05:
            kind, value = "crash", {"crash": True}
        body, told = json.dumps(value).encode(), value
        if kind == "file":
            body = self.chance.randbytes(self.chance.choice([100, 16_384, 70_000]))
            told = hashlib.md5(body).hexdigest()
        body = b"[1," if kind == "bad" else body
        media = b"application/octet-stream" if kind == "file" else b"application/json"
        lines = (b"POST /predict HTTP/1.1", b"Host: localhost", b"Content-Type: " + media)
        client.send(b"\r\n".join((*lines, b"Content-Length: %d" % len(body), b"", b"")) + body)
        reply = client.reply()
        wanted = {"bad": 400, "crash": 500}.get(kind, 200)
        if reply.status != wanted:
            self.wrong.append(f"{kind}: {reply.status} {reply.body[:200]!r}")
        elif wanted == 200:
            answer = json.loads(reply.body)
            self.threads.update(answer["threads"])
            if answer["told"] != told or not answer["main"]:
                self.wrong.append(f"{kind}: {answer}")
        self.crashed += kind == "crash"


def test_every_item_keeps_its_fate_and_scripts_their_thread(server: Server) -> None:
    clients = [Client(server, seed) for seed in range(16)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert [wrong for client in clients for wrong in client.wrong] == []
    assert any("panglot-intake" in client.threads for client in clients), "there was work for it"
    assert sum(client.crashed for client in clients) > 3
    deaths = server.metric("panglot_reruns_total", reason="worker_died")
    assert deaths <= 4 * 2 * sum(client.crashed for client in clients), "only what ran with a crash is run again"


def all_at_once(ask: Callable[[int], None]) -> None:
    """Have sixteen clients ask, each with a seed of its own."""
    clients = [threading.Thread(target=ask, args=(seed,)) for seed in range(16)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()


HINTS = """
import dataclasses, hashlib, threading, time
from panglot import File, route

@dataclasses.dataclass
class Own:
    number: int

    def __post_init__(self):
        self.main = threading.current_thread() is threading.main_thread()

@route("/files", batch=4)
def files(number: list[int], file: list[File]):
    time.sleep(0.005)
    names = [thread.name for thread in threading.enumerate()]
    return [[id, hashlib.md5(upload.view).hexdigest(), names] for id, upload in zip(number, file)]

@route("/own", batch=4)
def own(thing: list[Own]):
    time.sleep(0.005)
    return [[item.number, item.main] for item in thing]
"""


def test_hints_are_read_ahead_where_they_call_nothing_of_the_script(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(HINTS)
    threads: set[str] = set()
    wrong: list[object] = []

    def ask(server: Server, seed: int) -> None:
        chance = random.Random(seed)
        with server.new_client() as client:
            for number in range(30):
                body = chance.randbytes(chance.choice([100, 20_000]))
                told = client.post("/files", data={"number": number}, files={"file": body}).json()
                threads.update(told[2])
                own = client.post("/own", json={"number": number}).json()
                if told[:2] != [number, hashlib.md5(body).hexdigest()] or own != [number, True]:
                    wrong.append((told, own))

    with serving(tmp_path) as server:
        all_at_once(partial(ask, server))
    assert wrong == []
    assert "panglot-intake" in threads, "there was work for it"


TIINFER = """
import threading, time
import tiinfer

class Told(tiinfer.Model):
    def load(self):
        return True

    def predict(self, request):
        time.sleep(0.005)
        names = [thread.name for thread in threading.enumerate()]
        return [{"told": item["text"], "threads": names} for item in request]
"""
EVALS = """
import threading, time
from evals.utils import create_net_handler, net_inference_handler

@create_net_handler
def create_net(configs):
    return {}, 0, ""

@net_inference_handler
def net_inference(model, reqs):
    time.sleep(0.005)
    names = [thread.name for thread in threading.enumerate()]
    told = [{"told": req["data"]["body"].decode(), "threads": names} for req in reqs]
    return [{"code": 0, "message": "", "result": each} for each in told], 0, ""
"""


@pytest.mark.parametrize(
    ("file", "script", "path", "settings"),
    [
        ("model_service.py", TIINFER, "/v1/models/m:predict", ""),
        ("eval.py", EVALS, "/v1/eval", "[evals]\nbatch_size = 4\n"),
    ],
    ids=["tiinfer", "evals"],
)
def test_platforms_whose_bodies_we_read_alone(file: str, script: str, path: str, settings: str, tmp_path: Path) -> None:
    (tmp_path / file).write_text(script)
    (tmp_path / "panglot.toml").write_text(settings)
    threads: set[str] = set()
    wrong: list[object] = []

    def ask(server: Server, seed: int) -> None:
        with server.new_client() as client:
            for number in range(30):
                text = f"{seed} {number} " + "x" * (number % 3 * 10_000)
                body = {"text": text} if script is TIINFER else single(text.encode())
                answer = client.post(path, json=body).json()
                told = answer if script is TIINFER else answer["result"]
                threads.update(told["threads"])
                if told["told"] != text:
                    wrong.append(told)

    with serving(tmp_path, env={"TI_INFERENCE_MAX_BATCH_SIZE": "4"}) as server:
        all_at_once(partial(ask, server))
    assert wrong == []
    assert "panglot-intake" in threads, "there was work for it"
