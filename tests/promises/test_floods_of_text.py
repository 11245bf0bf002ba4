"""However much a script says, raised or printed, the log, the memory of the front and its loop stay within bounds."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import psutil
import pytest

from support.server import serving, wait_until

MIB = 1 << 20
RAISES = """
class Model:
    def predict(self, request):
        raise KeyError(request)
"""
RAISES_IN_A_BATCH = """
class Model:
    def predict_batch(self, items):
        raise KeyError(items)
"""
REFUSES = """
from panglot import ClientError

def predict(request):
    raise ClientError(request)
"""
PRINTS = """
import os

def predict(request):
    number, flood, end = 0, *request
    while not os.path.exists(end):
        if flood == "numbers":
            print(*range(number, number + 1000), sep="\\n")
            number += 1000
        else:
            os.write(1, b"\\n" * 4096)
    return flood
"""


def package(folder: Path, script: str) -> Path:
    (folder / "model.py").write_text(script)
    return folder


@pytest.mark.parametrize("script", [RAISES, RAISES_IN_A_BATCH], ids=["alone", "batch"])
def test_an_exception_that_holds_its_request_is_told_in_part(tmp_path: Path, script: str) -> None:
    with serving(package(tmp_path, script)) as server:
        front = psutil.Process(server.process.pid)
        server.predict("begins" + "ä\n" * 10)
        before = front.memory_info().rss
        most = 0
        for _ in range(3):
            answer = server.predict("begins" + "ä\n" * 5_000_000 + "ends")
            assert answer.status_code == 500
            most = max(most, front.memory_info().rss)
        server.wait_log(r"(?s)KeyError: .*begins.*characters left out.*ends'")
        assert len(server.client.get("/").text) < 4 * MIB
        # The body itself, in pieces and once more on its way.
        assert most - before < 100 * MIB
    assert len(server.log) < 2 * MIB


def test_a_refusal_in_too_many_words_is_sent_in_part(tmp_path: Path) -> None:
    with serving(package(tmp_path, REFUSES)) as server:
        answer = server.predict("begins" + "x" * 5_000_000 + "ends")
        assert answer.status_code == 400
        assert len(answer.content) < 20_000
        message = answer.json()["error"]["message"]
        assert message.startswith("begins")
        assert message.endswith("ends")


@pytest.mark.parametrize("flood", ["numbers", "nothing"])
def test_short_lines_do_not_starve_the_others(tmp_path: Path, flood: str) -> None:
    with serving(package(tmp_path, PRINTS)) as server:
        end = tmp_path / "end"
        asking = threading.Thread(target=server.predict, args=((flood, str(end)),))
        began = time.monotonic()
        asking.start()
        wait_until(lambda: server.metric("panglot_log_dropped_bytes_total") > 0)
        for _ in range(200):
            assert server.client.get("/v2/health/live").status_code == 200
        assert asking.is_alive(), "all were answered in the midst of the flood"
        end.touch()
        asking.join()
        assert server.log.count("/0 |") < (time.monotonic() - began + 2) * 1048576 / 100
        server.wait_log(r"bytes of output dropped \(more than 1048576 bytes in a second; a line counts as 100 at least")


def test_the_last_words_before_a_death_are_kept(tmp_path: Path) -> None:
    script = "import os\n\ndef predict(n):\n    for i in range(n):\n        print('word', i)\n    os._exit(4)\n"
    with serving(package(tmp_path, script)) as server:
        assert server.predict(250).status_code == 500
        server.wait_log(r"(?s)ended with exit code 4.*its last words:.*word 249")


TELLS = """
import gc
from panglot_worker.line import wire
from panglot_worker.line.port import Port

PORT = next(thing for thing in gc.get_objects() if isinstance(thing, Port))

def predict(request):
    event = {"type": "warning", "message": "begins" + "x" * request["size"] + "ends"}
    if request["forged"]:
        PORT.send([wire.json_frame(wire.EVENT, PORT.generation, event)])
    else:
        PORT.tell(wire.EVENT, event)
    return request["size"]
"""


def test_what_a_worker_tells_about_itself_is_bounded(tmp_path: Path) -> None:
    with serving(package(tmp_path, TELLS), "--restart-delay", "0.05s") as server:
        assert server.predict({"size": 1_000_000, "forged": False}).json() == 1_000_000
        server.wait_log("warning: beginsxxx.*characters left out.*xxxends")
        assert server.predict({"size": 50_000_000, "forged": False}).json() == 50_000_000
        server.wait_log(r"a worker had more to tell \(warning, 500\d{5} bytes\) than is read")
        assert server.metric("panglot_worker_restarts_total") == 0
        assert len(server.log) < 200_000
        assert server.predict({"size": 50_000_000, "forged": True}).status_code == 500
        server.wait_log(r"broke the protocol: a EVENT frame of \d+ bytes, where at most 2097152 may come")
