"""What a Prometheus draws of a server after a minute of traffic: questions of the dashboard, on its graph page."""

from __future__ import annotations

import contextlib
import json
import math
import socket
import subprocess
import tempfile
import time
import urllib.parse
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import yaml

from support.browser import Browser
from support.server import Server, panglot, serving, wait_until

SECONDS = 50
PANELS = ("Requests per second", "Where the time goes")


def take(browser: Browser, package: Path, picture: Path) -> None:
    """Photograph the graphs of a served package while it is asked."""
    with (
        tempfile.TemporaryDirectory() as place,
        serving(package, "--workers", "2") as server,
        prometheus(server, Path(place)) as url,
    ):
        ask(server, package)
        queries: dict[str, str] = {}
        for index, expression in enumerate(expressions(package, Path(place))):
            shown = {"expr": expression, "tab": "0", "range_input": "1m", "step_input": "1"}
            queries |= {f"g{index}.{name}": value for name, value in shown.items()}
        browser.resize(1280, 1260)
        browser.open(f"{url}/classic/graph?{urllib.parse.urlencode(queries)}")
        time.sleep(6)
        browser.run("scrollTo(0, 0)")
        browser.screenshot(picture)


@contextlib.contextmanager
def prometheus(server: Server, folder: Path) -> Iterator[str]:
    """A Prometheus that scrapes the server each second."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    targets = [{"targets": [server.url.removeprefix("http://")]}]
    job = {"job_name": "panglot", "scrape_interval": "1s", "static_configs": targets}
    (folder / "prometheus.yml").write_text(yaml.safe_dump({"scrape_configs": [job]}))
    command = ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    process = subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"])
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until(lambda: _ready(url), 60)
        yield url
    finally:
        process.terminate()
        process.wait(30)


def _ready(url: str) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(f"{url}/-/ready").status_code == 200
    return False


def expressions(package: Path, folder: Path) -> list[str]:
    """What the dashboard of `panglot package --monitoring` asks for in some of its panels."""
    done = panglot("package", str(package), "--monitoring", "--output", str(folder / "deploy"))
    assert done.returncode == 0, done.stderr
    dashboard = json.loads((folder / "deploy" / "dashboard.json").read_text())
    panels = {panel["title"]: panel["targets"][0]["expr"] for panel in dashboard["panels"] if "targets" in panel}
    chosen = [panels[title] for title in PANELS if title in panels]
    assert len(chosen) == len(PANELS), list(panels)
    return [
        expression.replace("$__rate_interval", "10s").replace('{instance=~"$instance"}', "") for expression in chosen
    ]


def ask(server: Server, package: Path) -> None:
    """Traffic that rises and falls, some of it refused."""
    pictures = [(path.name, path.read_bytes()) for path in sorted(package.glob("*.png"))]
    with ThreadPoolExecutor(4) as people:
        for second in range(SECONDS):
            count = int(12 + 10 * math.sin(second / 6))
            list(people.map(lambda file: server.predict(files={"image": file}), (pictures * 5)[:count]))
            if second % 4 == 0:
                server.predict(files={"image": ("README.md", b"# No picture", "text/markdown")})
            time.sleep(0.7)
