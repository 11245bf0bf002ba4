"""Take the pictures of the documents anew: `make pictures`, or this file with the names of some of them.

Pages are photographed in Chromium. Commands are run with a terminal for their output; rich draws what they write.
"""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(HERE)]

import monitoring  # noqa: E402
import numpy as np  # noqa: E402
from PIL import Image  # noqa: E402

from support import goldens  # noqa: E402
from support.browser import Browser, browsing  # noqa: E402
from support.live import LIVE, LiveServer, Part  # noqa: E402
from support.server import Server, panglot, serving, wait_until  # noqa: E402
from support.streams import start  # noqa: E402
from support.videos import made  # noqa: E402

EXAMPLES = ROOT / "examples"
DIGITS = EXAMPLES / "digits"


# Terminals


def take_bench(browser: Browser) -> None:
    with tempfile.TemporaryDirectory() as place:
        shutil.copytree(DIGITS, Path(place, "digits"))
        panglot_bench = [sys.executable, "-m", "panglot", "bench", "digits", "--check", "--html", "bench.html"]
        subprocess.run(panglot_bench, cwd=place, check=True)
        browser.resize(1000, 986)
        browser.open(Path(place, "bench.html").as_uri())
        browser.screenshot(HERE / "bench-page.png")


def take_terminals(browser: Browser) -> None:
    """The commands in terminals of 80 and 120 columns, which a test compares with what they say today."""
    with goldens.stage() as folder:
        for name in goldens.SCENES:
            goldens.take(name, folder)


# Pages


def take_playground(browser: Browser) -> None:
    with serving(DIGITS) as server:
        browser.resize(1280, 700)
        browser.open(server.url)
        for name in ("three.png", "nine.png", "seven.png"):
            browser.wait("!!document.querySelector('.request .file img')")
            browser.drop(".request .drop", DIGITS / name, "image/png")
            tries = browser.run("document.querySelectorAll('.tries li').length")
            browser.click("form.request .primary")
            browser.wait(f"document.querySelectorAll('.tries li').length > {tries}")
        browser.wait("!!document.querySelector('.timeline')")
        browser.screenshot(HERE / "playground.png")


def take_boxes(browser: Browser) -> None:
    """Shapes over a picture, at night."""
    with tempfile.TemporaryDirectory() as place, serving(ROOT / "tests" / "packages" / "pages_shapes") as server:
        pixels = np.linspace((40, 60, 110), (190, 150, 120), 300).astype(np.uint8)[:, None, :].repeat(400, axis=1)
        pixels[45:150, 20:200] = (90, 130, 90)
        pixels[50:90, 50:90] = (200, 170, 60)
        file = Path(place, "meadow.png")
        Image.fromarray(pixels).resize((40, 30)).resize((400, 300), Image.Resampling.NEAREST).save(file)
        small = Path(place, "small.png")
        Image.open(file).resize((40, 30)).save(small)
        browser.resize(1280, 700, dark=True)
        browser.open(server.url)
        browser.wait("!!document.querySelector('.request .drop')")
        browser.drop(".request .drop", small, "image/png")
        browser.run("document.querySelector('.request input[type=text]').value = 'modelarts'")
        browser.click("form.request .primary")
        browser.wait("!!document.querySelector('.stage svg rect')")
        browser.screenshot(HERE / "boxes.png")


def take_status(browser: Browser) -> None:
    """Forty seconds of traffic that rises and falls, some of it refused."""
    pictures = [(path.name, path.read_bytes()) for path in sorted(DIGITS.glob("*.png"))]
    with serving(DIGITS, "--workers", "2") as server, ThreadPoolExecutor(4) as people:
        wait_until(lambda: server.metric("panglot_workers", state="ready") == 2, 30)
        for second in range(40):
            count = int(12 + 10 * math.sin(second / 5))
            list(people.map(lambda one: server.predict(files={"image": one}), (pictures * 3)[:count]))
            if second % 4 == 0:
                server.predict(files={"image": ("README.md", b"# No picture", "text/markdown")})
            time.sleep(0.4)
        browser.resize(1280, 980)
        browser.open(server.url + "/status")
        browser.wait("document.body.innerText.includes('422')")
        browser.wait("document.querySelectorAll('tr[data-id]').length > 5")
        browser.screenshot(HERE / "status.png")


CHAT = """Lines are what `\\n` ends. Two ways to **count** them:

```python
from pathlib import Path

def lines(path):
    return len(Path(path).read_text().splitlines())
```

| way | 1 MB | 1 GB |
|---|--:|--:|
| `wc -l` | 1 ms | 0.2 s |
| Python | 4 ms | 3.1 s |

1. `wc -l` is for large files.
2. The function is for everything else."""
TALKER = f'''"""Code reviewer. Knows Python, shell and SQL."""

import time


def chat(messages, temperature: float = 0.2):
    """Code reviewer. Knows Python, shell and SQL."""
    for piece in {CHAT!r}.split(" "):
        time.sleep(0.02)
        yield piece + " "
'''


def take_chat(browser: Browser) -> None:
    """A conversation, and the same page in Chinese at night."""
    with tempfile.TemporaryDirectory() as place:
        package = Path(place, "reviewer")
        package.mkdir()
        (package / "model.py").write_text(TALKER)
        with serving(package) as server:
            looks = (
                ("chat", "en-US", "How do I count the lines of a file?"),
                ("chat-zh", "zh-CN", "怎么数文件的行数？"),
            )
            for name, language, question in looks:
                browser.speak(language)
                browser.resize(1280, 880, dark=name != "chat")
                browser.open("about:blank")
                browser.open(server.url)
                browser.run("localStorage.clear()")
                browser.open("about:blank")
                browser.open(server.url)
                browser.type(".composer textarea", question)
                browser.press("Enter")
                browser.wait("Number(document.querySelector('.messages').dataset.done ?? 0) > 0", 30)
                time.sleep(0.5)
                browser.screenshot(HERE / f"{name}.png")


def take_home(browser: Browser) -> None:
    models = (f"digits={DIGITS}", f"chat={ROOT / 'tests' / 'packages' / 'pages_chat'}")
    with serving(Path(models[0]), models[1], f"words={ROOT / 'tests' / 'packages' / 'documented_json'}") as server:
        browser.resize(1280, 420)
        browser.open(server.url)
        browser.wait("document.querySelectorAll('.card .state.ready').length === 3", 30)
        browser.screenshot(HERE / "models.png")


def take_jobs(browser: Browser) -> None:
    with serving(ROOT / "tests" / "packages" / "job_steps", "--workers", "1", "--on-leave", "interrupt") as server:
        for body in ({"steps": 1}, {"raise": "no such file: speech.wav"}, {"steps": 60, "pause": 0.5}, {"steps": 2}):
            server.predict(body, headers={"prefer": "respond-async"})
        browser.resize(1280, 420)
        browser.open(server.url + "/jobs")
        browser.wait("(document.querySelector('progress')?.value ?? 0) > 0.2", 60)
        browser.screenshot(HERE / "jobs.png")
        for job in server.client.get("/jobs").json()["jobs"]:
            server.client.delete(f"/jobs/{job['id']}")


def take_login(browser: Browser) -> None:
    with serving(DIGITS, env={"PANGLOT_TOKEN": "secret"}) as server:
        browser.resize(1000, 560)
        browser.open(server.url)
        browser.wait("!!document.querySelector('#token')")
        browser.screenshot(HERE / "login.png")


def take_api(browser: Browser) -> None:
    with serving(DIGITS) as server:
        browser.resize(1280, 800)
        browser.open(server.url + "/docs")
        browser.wait("document.querySelectorAll('.opblock').length > 0")
        browser.screenshot(HERE / "api.png")


RATE = 25


def ball(number: int, width: int, height: int, speed: float) -> Any:
    """A light ball that goes to and fro before something dark."""
    frame = np.full((height, width, 3), (72, 48, 28), np.uint8)
    left, top = (
        int(abs(number * speed * pace % (2 * room) - room)) for pace, room in ((5, width - 32), (3, height - 32))
    )
    frame[top : top + 32, left : left + 32] = (230, 235, 245)
    return frame


def camera(speed: float) -> Iterator[Part]:
    """Two minutes, as slowly as they pass."""
    body = made(RATE * 120, width=320, height=180, rate=RATE, picture=lambda *about: ball(*about, speed))
    yield LIVE
    size = len(body) // (RATE * 120)
    for at in range(0, len(body), size):
        yield body[at : at + size]
        yield 1 / RATE


def take_video(browser: Browser) -> None:
    speeds = {"/camera-1.ts": 1.0, "/camera-2.ts": 1.7}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "ball")
        assert panglot("new", "megflow", str(folder), "--kind", "video").returncode == 0
        parts = {path: list(camera(speed)) for path, speed in speeds.items()}
        with (
            LiveServer(lambda number, path, head: parts[path]) as web,
            serving(folder, "--url-allow", "127.0.0.1") as server,
        ):
            for path in speeds:
                start(server, web.url(path))
            photograph_streams(browser, server)


def photograph_streams(browser: Browser, server: Server) -> None:
    wait_until(lambda: all(stream["analysed"] > 3 * RATE for stream in server.client.get("/list").json()), 60)
    browser.resize(1280, 900)
    browser.open(server.url + "/videos")
    browser.wait("[...document.images].filter(one => one.naturalWidth).length >= 2", 30)
    # Rates are of what comes while somebody looks.
    time.sleep(5)
    browser.screenshot(HERE / "video.png")
    browser.resize(1280, 420)
    browser.open(server.url + "/graph")
    browser.wait("document.querySelectorAll('.graph .edge text').length > 0")
    time.sleep(3)
    browser.screenshot(HERE / "graph.png")
    for stream in server.client.get("/list").json():
        server.client.post(f"/stop/{stream['id']}")


def take_prometheus(browser: Browser) -> None:
    with tempfile.TemporaryDirectory() as place:
        package = Path(shutil.copytree(DIGITS, Path(place, "digits")))
        monitoring.take(browser, package, HERE / "prometheus.png")


PICTURES: dict[str, Callable[[Browser], None]] = {
    "playground": take_playground,
    "boxes": take_boxes,
    "status": take_status,
    "chat": take_chat,
    "home": take_home,
    "jobs": take_jobs,
    "login": take_login,
    "api": take_api,
    "prometheus": take_prometheus,
    "terminals": take_terminals,
    "bench": take_bench,
    "video": take_video,
}


def main(names: list[str]) -> None:
    for name in names or PICTURES:
        with browsing() as browser:
            PICTURES[name](browser)
        print(f"taken: {name}")


if __name__ == "__main__":
    main(sys.argv[1:])
