"""`panglot serve` as a person sees it in a terminal, and on a Unix socket."""

from __future__ import annotations

import json
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest

from panglot.serving.start_message import StartMessage
from support.ports import free_port
from support.programs import need
from support.server import PACKAGES, ROOT, serving, wait_until
from support.terminal import Shown, in_terminal

EXAMPLES = ROOT / "examples"
RIGHT = {
    "azureml": r'"digits": \[7, 3\]',
    "bare": '"probabilities":',
    "cog": '"label":"friendly"',
    "digits": '"digit":7',
    "evals": '"class":"seven"',
    "megflow/digits": '"digit": ?7',
    "modelarts": r'"digits": \[7\]',
    "paddle": '"class_id":3',
    "runpod": '"label":"friendly"',
    "sagemaker": r'"digits": \[7, 3\]',
    "tiinfer": r'"digits":\[7\]',
    "truss": r'"digits": \[7, 3\]',
    "triton": r'"DIGIT":\[\[7\]\]',
}


def served(path: Path, columns: int = 80, *flags: str) -> tuple[Shown, str]:
    """What `serve` showed until it was stopped, and the answer to the line it shows, pasted into a shell."""
    need("curl")
    answers: list[str] = []
    port = free_port()
    url = f"http://127.0.0.1:{port}"

    def paste(shown: str) -> bool:
        """Whether the message is complete; its line is run then."""
        if not re.search(r"^─{40,}$", shown, re.MULTILINE):
            return False
        line = next((line for line in shown.splitlines() if "curl " in line), "")
        if line:
            done = subprocess.run(line, shell=True, cwd=ROOT, capture_output=True, text=True, check=False)
            answers.append(done.stdout)
        return True

    words = ["panglot", "serve", str(path), "--port", str(port), *flags]
    shown = in_terminal(words, columns, until=paste)
    assert url in shown.screen
    return shown, answers[0] if answers else ""


NEEDS = {"paddle": "Paddle"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.rest(NEEDS[name])] if name in NEEDS else []) for name in RIGHT]
)
def test_it_ends_with_a_box_whose_line_works_as_pasted(name: str) -> None:
    shown, answer = served(EXAMPLES / name)
    assert re.search(RIGHT[name], answer), answer
    rows = [line.split() for line in shown.screen.splitlines()]
    assert {"address", "docs", "stop"} <= {row[0] for row in rows if row}
    assert "is ready" in shown.screen
    assert not re.search(r"-d '\.\.\.'|@file\.bin|[A-Za-z0-9+/]{120}", shown.screen)
    assert shown.code == 0


def test_requests_are_logged_on_a_terminal_and_a_script_without_an_example_says_how() -> None:
    shown, _ = served(PACKAGES / "function", 120)
    way = "for a command to paste here, define example() in the script, or put a request.json beside it"
    assert way in shown.screen
    shown, answer = served(EXAMPLES / "digits")
    assert "7" in answer
    assert re.search(r"digits POST /predict 200 [\d.]+ ms", shown.screen)


def test_a_token_is_left_to_the_variable() -> None:
    message = StartMessage("m", "plain", "http://127.0.0.1:1", line="curl x", how_to="")
    assert max(len(re.sub(r"\033\[\d+m", "", line)) for line in message.box(80).splitlines()) == 80


def test_the_load_spinner_leaves_no_trace(tmp_path: Path) -> None:
    """Also where the script prints and warns while the line moves."""
    script = (
        "import time\n\ndef load():\n    for step in range(3):\n        time.sleep(0.5)\n        print('step', step)\n"
    )
    (tmp_path / "model.py").write_text(script + "\ndef predict(request):\n    return 1\n")
    shown, _ = served(tmp_path)
    assert re.search(r"\r\x1b\[K  [|/-] \d s, ", shown.raw), "it moved"
    assert not re.search(r"[|/-] \d s, ", shown.screen)
    assert [line.split(" | ")[1] for line in shown.screen.splitlines() if " | step" in line] == [
        "step 0", "step 1", "step 2",
    ]  # fmt: skip


def test_a_unix_socket(tmp_path: Path) -> None:
    need("curl")
    path = tmp_path / "panglot.sock"
    process = subprocess.Popen(
        [sys.executable, "-m", "panglot", "serve", str(EXAMPLES / "digits"), "--host", f"unix:{path}"],
        stderr=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    lines: list[str] = []
    assert process.stderr is not None
    reader = threading.Thread(target=lambda: lines.extend(process.stderr or ()), daemon=True)
    reader.start()
    try:
        wait_until(lambda: any("try: curl" in line for line in lines), 60, lambda: "".join(lines))
        line = next(line for line in lines if "try: " in line).partition("try: ")[2]
        assert f"--unix-socket {shlex.quote(str(path))}" in line
        done = subprocess.run(line, shell=True, cwd=ROOT, capture_output=True, text=True, check=False)
        assert json.loads(done.stdout)["digit"] == 7
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), base_url="http://localhost") as client:
            assert client.get("/v2/health/ready").status_code == 200
            assert client.get("/", headers={"host": "evil.example"}).status_code == 403
        again = subprocess.run(
            [sys.executable, "-m", "panglot", "serve", str(EXAMPLES / "digits"), "--host", f"unix:{path}"],
            capture_output=True, text=True, cwd=ROOT, check=False,
        )  # fmt: skip
        assert again.returncode == 3
        assert "address already in use" in again.stderr
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        reader.join(5)
        process.stderr.close()
    assert not path.exists()


def test_the_file_of_a_server_that_was_killed_is_no_hindrance(tmp_path: Path) -> None:
    path = tmp_path / "left.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    from panglot.web.listening import unix_socket

    with unix_socket.bind(str(path), 5) as sock:
        assert sock.getsockname() == str(path)


def test_progress_bars_of_scripts_stay_one_line(tmp_path: Path) -> None:
    """As Keras draws them, with colours and backspaces, and Spark, which wipes its own out."""
    script = """
import sys

def predict(request):
    for step in range(1, 11):
        sys.stdout.write("\\b" * 20 + "\\r\\033[1m%2d/10\\033[0m \\033[32m%s\\033[0m 3s" % (step, "=" * step))
    sys.stdout.write("\\n")
    for step in range(3):
        sys.stderr.write("\\r[Stage 0:>  (%d + 1) / 3]" % step)
    sys.stderr.write("\\r" + " " * 25 + "\\r\\n")
    sys.stderr.flush()
    print("a line after them")
    return 1
"""
    (tmp_path / "model.py").write_text(script)
    with serving(tmp_path) as server:
        server.predict(1)
        server.wait_log("a line after them")
        printed = [line.partition(" | ")[2] for line in server.lines if " | " in line]
    assert printed == ["10/10 ========== 3s", "a line after them"]


def test_a_timeout_that_is_none_is_400() -> None:
    with serving("function") as server:
        assert server.predict(1, headers={"x-timeout-ms": "2000.5"}).status_code == 200
        for value in ("abc", "nan", "-5", "1e3", "inf", "0x10"):
            answer = server.predict(1, headers={"x-timeout-ms": value})
            assert answer.status_code == 400, value
            assert answer.json()["error"]["code"] == "bad_timeout"
            assert "X-Timeout-Ms" in answer.json()["error"]["message"]


def test_too_large_names_its_setting() -> None:
    with serving("function", "--max-body", "2000", "--max-json", "1000") as server:
        answer = server.predict(content=b"x" * 3000)
        assert answer.status_code == 413
        assert "larger than max_body, 2000 bytes" in answer.json()["error"]["message"]
        answer = server.predict("x" * 1500)
        assert answer.status_code == 413
        assert "larger than max_json, 1000 bytes" in answer.json()["error"]["message"]
