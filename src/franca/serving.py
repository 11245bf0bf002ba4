"""`franca serve`, from a recognised package to the exit code."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
import time
from collections.abc import Callable

import uvloop

from franca import log as logs
from franca.discovery import Package
from franca.engine.engine import LocalEngine
from franca.errors import Unanswered
from franca.metrics import Metrics
from franca.settings import Settings
from franca.web import access, app, native, server
from franca.web.front import Front

log = logging.getLogger("franca")
STILL_LOADING = 10.0


def serve(package: Package, settings: Settings) -> None:
    """Serve until told to stop. Raises StartError before the first ready, Unanswered when the drain time passes."""
    logs.configure(settings.log_format, settings.log_level)
    rules = access.establish(settings)
    sock = server.bind(settings)
    uvloop.run(_Serving(package, settings, rules, sock).run())


class _Serving:
    def __init__(self, package: Package, settings: Settings, rules: access.Access, sock: socket.socket) -> None:
        self.package = package
        self.settings = settings
        self.sock = sock
        self.metrics = Metrics()
        self.engine = LocalEngine(package, settings, self.metrics)
        self.front = Front(package, settings, self.engine, self.metrics, rules, native.find(package.dialect))
        self.front.app = app.build(self.front)
        self.web = server.WebServer(self.front, sock)
        self.signals = 0
        self.stopped = asyncio.Event()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal)
        await self.web.start()
        await self.engine.start()
        try:
            await self._until_ready()
            if not self.stopped.is_set():
                self._say_ready()
                await self.stopped.wait()
            await self._drain()
        finally:
            await self.engine.stop()
            await self.web.stop(0)

    def _on_signal(self) -> None:
        self.signals += 1
        self.stopped.set()

    async def _until_ready(self) -> None:
        host, port = self.sock.getsockname()[:2]
        log.info("listening on http://%s:%d, loading %s", host, port, self.package.name)
        began = time.monotonic()
        ready = asyncio.ensure_future(self.engine.ready.wait())
        stopped = asyncio.ensure_future(self.stopped.wait())
        with Progress(self._step) as progress:
            while not (ready.done() or stopped.done()):
                await asyncio.wait({ready, stopped}, timeout=0.2, return_when=asyncio.FIRST_COMPLETED)
                progress.show(time.monotonic() - began)
        ready.cancel()
        stopped.cancel()
        if self.engine.failed is not None:
            raise self.engine.failed

    def _step(self) -> str:
        workers = self.engine.pool.workers
        return workers[0].step if workers else "starting"

    def _say_ready(self) -> None:
        host, port = self.sock.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        base = f"http://{shown}:{port}"
        log.info("%s is ready on %s (%s)", self.package.name, base, self.package.dialect)
        log.info("try: %s", try_line(base, self.front.contract.routes[0].path, self.engine.description, self.package))

    async def _drain(self) -> None:
        self.front.draining = self.engine.draining = True
        open_calls = len(self.engine.live)
        log.info("stopping; %d request(s) to finish", open_calls)
        deadline = time.monotonic() + self.settings.drain
        stopping = asyncio.ensure_future(self.web.stop(self.settings.drain))
        while not stopping.done() and time.monotonic() < deadline and self.signals < 2:
            await asyncio.sleep(0.02)
        unanswered = len(self.engine.live)
        stopping.cancel()
        if unanswered:
            raise Unanswered(unanswered)


class Progress:
    """A moving line on a terminal, a plain line now and then in a log."""

    def __init__(self, step: Callable[[], str]) -> None:
        self._step = step
        self._terminal = sys.stderr.isatty()
        self._told = 0.0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._terminal:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()

    def show(self, seconds: float) -> None:
        if self._terminal and seconds > 0.5:
            sys.stderr.write(f"\r\033[K  {'|/-'[int(seconds * 5) % 3]} {seconds:.0f} s, {self._step()}")
            sys.stderr.flush()
        elif not self._terminal and seconds - self._told >= STILL_LOADING:
            self._told = seconds
            log.info("still loading after %.0f s: %s", seconds, self._step())


def try_line(base: str, path: str, description: dict[str, object], package: Package) -> str:
    """A curl line that works on this package."""
    api = description.get("api")
    example = api.get("example") if isinstance(api, dict) else None
    kind = example.get("kind") if isinstance(example, dict) else ""
    url = base + path
    if kind == "form" and isinstance(example, dict):
        fields = " ".join(f"-F {name}=@{_sample(package, name)}" for name in example["files"])
        return f"curl {fields} {url}"
    if kind == "file" and isinstance(example, dict):
        return f"curl -H 'Content-Type: {example['type']}' --data-binary @{_sample(package, 'file')} {url}"
    if kind == "json" and isinstance(example, dict):
        import orjson

        text = orjson.dumps(example["value"]).decode().replace("'", "'\\''")
        if len(text) < 400:
            return f"curl -H 'Content-Type: application/json' -d '{text}' {url}"
    return f"curl -H 'Content-Type: application/json' -d '...' {url}"


def _sample(package: Package, name: str) -> str:
    """A picture that lies in the package, to make the line ready to run."""
    pictures = sorted(path for suffix in ("png", "jpg", "jpeg") for path in package.folder.glob(f"*.{suffix}"))
    if not pictures:
        return f"{name}.png"
    shown = next((picture for picture in pictures if picture.stem == "seven"), pictures[0])
    try:
        import os

        return os.path.relpath(shown)
    except ValueError:
        return str(shown)
