"""Pictures of commands in terminals of 80 and 120 columns: taken by `make pictures`, compared by a test."""

from __future__ import annotations

import contextlib
import io
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.namespace import unshared
from support.server import PACKAGES, ROOT, Server, serving, wait_until
from support.terminal import coloured, in_terminal

HERE = ROOT / "docs" / "pictures" / "terminal"
WIDTHS = (80, 120)
FONT = re.compile(r"@font-face \{.*?\}", re.DOTALL)
DOT = re.compile(r"\x1b\[[\d;]*m")
NUMBER = re.compile(r"(\x1b\[[\d;]*m)|\d+(?:\.\d+)*")
"""A sequence that colours, which stays, or a number, which is another every time."""
BARS = re.compile("[▁-█]+")


@dataclass(frozen=True)
class Scene:
    """A command as a person types it. `until`: what the screen shows when it is stopped."""

    line: str
    until: str = ""
    names_only: bool = False
    """Whether what it says depends on the machine, so that only the names of lines are compared."""
    asks: bool = False
    """Whether it asks a server, which has answered some requests."""


SCENES = {
    "serve": Scene("panglot serve digits", until=r"(?m)^─{40,}$"),
    "inspect": Scene("panglot inspect digits --workers 2"),
    "run": Scene("panglot run digits 'digits/t*.png' digits/README.md"),
    "bench": Scene("panglot bench digits 'digits/*.png' --concurrency 1,4 --duration 1 --warmup 0.5"),
    "check": Scene("panglot check reference photo.png --against served-copy"),
    "doctor": Scene("panglot doctor digits", names_only=True),
    "top": Scene("panglot top http://127.0.0.1:8080 --once", asks=True),
}


@contextlib.contextmanager
def stage() -> Iterator[Path]:
    """A folder with the packages that the scenes name."""
    import numpy as np
    from PIL import Image

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        shutil.copytree(ROOT / "examples" / "digits", folder / "digits", ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("reference", "served-copy"):
            shutil.copytree(PACKAGES / "check_reference", folder / name)
        script = folder / "served-copy" / "model.py"
        script.write_text(script.read_text().replace(".transpose(2, 0, 1)", "[:, :, ::-1].transpose(2, 0, 1)"))
        pixels = np.random.default_rng(3).integers(0, 256, (40, 30, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "photo.png")
        yield folder


def seen(name: str, columns: int, folder: Path) -> str:
    """What stands on the terminal in the end, colours and all; on a machine whose ports are all free."""
    scene = SCENES[name]
    words = [*unshared("ip link set lo up"), "bash", "-c", f"exec {scene.line}"]
    raw = asked(scene, columns) if scene.asks else in_terminal(words, columns, cwd=folder, until=scene.until).raw
    for here, there in ((str(folder), "/home/me"), (str(Path(sys.executable).parent), "/opt/panglot/bin"),
                        (platform.release(), "6.12")):  # fmt: skip
        raw = raw.replace(here, there)
    return coloured(raw).rstrip() + "\n"


def asked(scene: Scene, columns: int) -> str:
    """What a command says of a server that a worker died in, and that has been quiet for a second since."""
    with serving("documented_json", "--workers", "2", "--fronts", "1") as server:
        for number, text in enumerate(("a fox", "a dog", "fail", "")):
            value = {"text": text, "labels": ["fox"] if text else None, "options": None}
            server.predict(value, headers={"x-request-id": f"request-{number}"})
        # One that is still loading would be told of in other words.
        wait_until(lambda: has_workers(server.client.get("/status.json").json()))
        server.workers()[0].kill()
        wait_until(lambda: is_quiet(server), 30)
        line = scene.line.replace("http://127.0.0.1:8080", server.url)
        return in_terminal(["bash", "-c", f"exec {line}"], columns).raw.replace(server.url, "http://127.0.0.1:8080")


def is_quiet(server: Server) -> bool:
    told = server.client.get("/status.json").json()
    return bool(told["deaths"]) and has_workers(told) and told["answered"] == 4 and not any(told["history"][-1][1:10])


def has_workers(told: Any) -> bool:
    """Whether both workers are ready, of which one was killed."""
    return [worker["state"] for worker in told["workers"]] == ["ready"] * 2


def take(name: str, folder: Path) -> None:
    """Write the pictures of a scene: the colours as the terminal got them, and a drawing of it for readers."""
    HERE.mkdir(exist_ok=True)
    for columns in WIDTHS:
        shown = seen(name, columns, folder)
        (HERE / f"{name}-{columns}.ansi").write_text(shown, encoding="utf-8")
        (HERE / f"{name}-{columns}.svg").write_text(drawn(name, columns, shown), encoding="utf-8")


def drawn(name: str, columns: int, shown: str) -> str:
    """The terminal as SVG, under the line that was typed. Its font would come from the internet."""
    from rich.console import Console
    from rich.terminal_theme import MONOKAI
    from rich.text import Text

    console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True)
    console.print(Text.assemble((f"$ {SCENES[name].line}\n", "bold green"), Text.from_ansi(shown.rstrip())))
    return FONT.sub("", console.export_svg(title="", theme=MONOKAI, unique_id=f"{name}-{columns}"))


def alike(name: str, shown: str) -> list[str]:
    """The lines of a picture, as far as they are the same on every machine and every day."""
    lines = []
    for line in shown.splitlines():
        if SCENES[name].names_only:
            words = re.match(r"(ok|warning|problem) +(\S+(?: \S+)*)  ", DOT.sub("", line))
            lines += [words[2]] if words else []
            continue
        if "warning:" not in DOT.sub("", line):  # how busy the machine was
            masked = NUMBER.sub(lambda found: found[1] or "0", line)
            lines.append(re.sub(r" +", " ", BARS.sub("▁", masked)).rstrip())
    return lines
