"""A Chromium to look at pages with, driven through the pipe of its DevTools protocol."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import importlib.util
import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
    "--remote-debugging-pipe",
)

LAUNCH = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"
)
"""Chromium reads commands from descriptor 3 and writes to 4."""
CODES = {"Enter": 13, "Tab": 9, "ArrowRight": 39}


class Browser:
    """One tab. What the page complains about and what it asks of the network is collected."""

    def __init__(self, program: str, profile: Path) -> None:
        commands, self._out = os.pipe()
        self._in, events = os.pipe()
        pair = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (commands, events)]
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                LAUNCH,
                *map(str, pair),
                program,
                *FLAGS,
                f"--user-data-dir={profile}",
                "about:blank",
            ],
            pass_fds=pair,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (commands, events, *pair):
            os.close(end)
        self.complaints: list[str] = []
        self.requested: list[str] = []
        self._buffer = b""
        self._ids = itertools.count(1)
        self._session = ""
        self._attach()

    def _attach(self) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        self._session = ""
        with contextlib.suppress(AssertionError, OSError):
            self.call("Browser.close")
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self._out)
        os.close(self._in)

    # The protocol

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._ids)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive(60)
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _receive(self, seconds: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], seconds)
            data = os.read(self._in, 1 << 20) if ready else b""
            assert data, "Chromium says nothing" if not ready else "Chromium has gone"
            self._buffer += data
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        about = message.get("params", {})
        if message.get("method") == "Network.requestWillBeSent":
            self.requested.append(about["request"]["url"])
        elif message.get("method") == "Log.entryAdded" and about["entry"]["level"] in ("warning", "error"):
            self.complaints.append(about["entry"]["text"])
        elif message.get("method") == "Runtime.exceptionThrown":
            details = about["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))

    # What a person does

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def run(self, expression: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, expression: str, seconds: float = 30) -> Any:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                value = self.run(expression)
            except AssertionError as error:
                # A click may have led to another page, which takes the place of this one meanwhile.
                if not any(words in str(error) for words in ("navigated", "context")):
                    raise
                value = None
            if value:
                return value
            time.sleep(0.05)
        raise AssertionError(f"{expression} did not come true; complaints: {self.complaints}")

    def click(self, selector: str) -> None:
        self.wait(f"!!document.querySelector({json.dumps(selector)})")
        self.run(f"document.querySelector({json.dumps(selector)}).click()")

    def type(self, selector: str, text: str) -> None:
        """Write into a field, as a person does."""
        self.wait(f"!!document.querySelector({json.dumps(selector)})")
        self.run(f"document.querySelector({json.dumps(selector)}).focus()")
        self.call("Input.insertText", text=text)

    def choose_file(self, selector: str, path: Path) -> None:
        self.wait(f"!!document.querySelector({json.dumps(selector)})")
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[str(path)])

    def press(self, key: str, *, control: bool = False) -> None:
        """Press and release a key that is known by its name, such as Enter."""
        about = {"key": key, "code": key, "windowsVirtualKeyCode": CODES.get(key, 0)}
        down = {"type": "keyDown", "text": "\r"} if key == "Enter" and not control else {"type": "rawKeyDown"}
        for kind in (down, {"type": "keyUp"}):
            self.call("Input.dispatchKeyEvent", modifiers=2 if control else 0, **kind, **about)

    def drop(self, selector: str, path: Path, media_type: str) -> None:
        """Drop a file onto an element, as from a window of the desktop."""
        data = base64.b64encode(path.read_bytes()).decode()
        self.run(
            f"""(() => {{
              const raw = Uint8Array.from(atob({json.dumps(data)}), (one) => one.charCodeAt(0));
              const given = new DataTransfer();
              given.items.add(new File([raw], {json.dumps(path.name)}, {{ type: {json.dumps(media_type)} }}));
              const event = new DragEvent("drop", {{ dataTransfer: given, bubbles: true, cancelable: true }});
              document.querySelector({json.dumps(selector)}).dispatchEvent(event);
            }})()"""
        )

    def paste_picture(self, path: Path) -> None:
        """Copy a picture, as PNG, and paste it."""
        data = base64.b64encode(path.read_bytes()).decode()
        self._copy(
            f"""(() => {{
              const raw = Uint8Array.from(atob("{data}"), (character) => character.charCodeAt(0));
              const picture = new Blob([raw], {{ type: "image/png" }});
              return navigator.clipboard.write([new ClipboardItem({{ "image/png": picture }})]);
            }})()"""
        )

    def paste_text(self, text: str) -> None:
        self._copy(f"navigator.clipboard.writeText({json.dumps(text)})")

    def _copy(self, expression: str) -> None:
        """Put something into the clipboard, and press Ctrl-V."""
        session, self._session = self._session, ""
        self.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
        self._session = session
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)
        self.run(expression)
        key = {"modifiers": 2, "key": "v", "code": "KeyV", "windowsVirtualKeyCode": 86}
        self.call("Input.dispatchKeyEvent", type="rawKeyDown", commands=["paste"], **key)
        self.call("Input.dispatchKeyEvent", type="keyUp", **key)

    def axe(self) -> list[str]:
        """What axe-core finds that keeps some people from using the page; skips the test where it is not installed."""
        found = importlib.util.find_spec("axe_playwright_python")
        if found is None or found.origin is None:
            pytest.skip("axe-core is not installed")
        self.run(Path(found.origin).with_name("axe.min.js").read_text(encoding="utf-8"))
        options = "{ resultTypes: ['violations'] }"
        shown = "v => v.id + ': ' + v.nodes.map(n => n.target.join(' ') + ' ' + n.failureSummary).join('; ')"
        listed: list[str] = self.run(f"axe.run(document, {options}).then((found) => found.violations.map({shown}))")
        return listed

    @contextlib.contextmanager
    def tab(self) -> Iterator[None]:
        """Another tab, which everything goes to until the end; it stays open."""
        before = self._session
        self._session = ""
        self._attach()
        try:
            yield
        finally:
            self._session = before

    def text(self) -> str:
        return str(self.run("document.body.innerText"))

    def resize(self, width: int, height: int, *, phone: bool = False, dark: bool = False) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if phone else 1,
            mobile=phone,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def speak(self, *languages: str) -> None:
        """Prefer these languages from now on, the first most."""
        agent = self.run("navigator.userAgent")
        self.call("Emulation.setUserAgentOverride", userAgent=agent, acceptLanguage=",".join(languages))

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Photograph what is seen, or the whole page."""
        options: dict[str, Any] = {}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            options = {"captureBeyondViewport": True, "clip": {**size, "scale": 1}}
        data = self.call("Page.captureScreenshot", format="png", **options)["data"]
        path.write_bytes(base64.b64decode(data))


@contextlib.contextmanager
def browsing() -> Iterator[Browser]:
    """A browser for the length of a test; skips the test where there is none."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("chromium is not installed")
    with tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True) as profile:
        browser = Browser(program, Path(profile))
        try:
            yield browser
        finally:
            browser.close()
