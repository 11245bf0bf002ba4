"""The promise: a page of another site makes a browser ask nothing here, unless CORS allows it."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from support.server import Server, serving
from support.streams import ended, start
from support.videos import make

FOREIGN = {"sec-fetch-site": "cross-site"}
PICTURE = {**FOREIGN, "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}
VISIT = {**FOREIGN, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
FRAME = {**FOREIGN, "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}
PAGES = ("/", "/docs", "/metrics", "/openapi.json", "/v2/health/live", "/v2/health/ready", "/no/such/path")


def is_refused(answer: httpx.Response) -> bool:
    return answer.status_code == 403 and "--cors-origin" in answer.text


@pytest.mark.parametrize("flags", [(), ("--no-auth",), ("--host", "0.0.0.0", "--no-auth")])
def test_without_a_token(flags: tuple[str, ...]) -> None:
    with serving("function", *flags) as server:
        for headers in (FOREIGN, PICTURE, FRAME):
            for path in PAGES:
                assert is_refused(server.client.get(path, headers=headers)), (path, headers)
            assert is_refused(server.predict(7, headers=headers))
        for site in ("same-origin", "same-site", "none"):
            assert server.predict(7, headers={"sec-fetch-site": site}).status_code == 200


def test_with_a_token() -> None:
    """A browser may send a password it remembers with whatever a page asks for."""
    with serving("function", env={"PANGLOT_TOKEN": "secret"}, ready=False) as server:
        server.wait_log("is ready")
        token = {"authorization": "Bearer secret"}
        assert is_refused(server.client.get("/metrics", headers={**PICTURE, **token}))
        assert is_refused(server.predict(7, headers={**FOREIGN, **token, "origin": "https://app.example"}))
        assert server.predict(7, headers=token).status_code == 200


def test_a_link_elsewhere_leads_to_our_pages() -> None:
    """Who follows a link looks at a page; nothing is asked of the script by it."""
    with serving("function") as server:
        for path in ("/", "/docs"):
            assert server.client.get(path, headers=VISIT).status_code == 200
        assert is_refused(server.predict(7, headers=VISIT))


def test_allowed_origins() -> None:
    with serving("function", "--cors-origin", "https://app.example") as server:
        assert server.predict(7, headers={**FOREIGN, "origin": "https://app.example"}).status_code == 200
        assert is_refused(server.predict(7, headers=PICTURE))
        assert server.predict(7, headers={**FOREIGN, "origin": "https://evil.example"}).status_code == 403
    with serving("function", "--cors-origin", "*") as server:
        assert server.predict(7, headers={**FOREIGN, "origin": "https://app.example"}).status_code == 200
        assert server.client.get("/metrics", headers=PICTURE).status_code == 200


def take(server: Server, stream: int, headers: dict[str, str]) -> httpx.Response:
    return server.client.get(f"/get_msgs/{stream}", headers=headers)


def test_messages_are_not_taken_by_a_picture(tmp_path: Path) -> None:
    """`<img src=".../get_msgs/0">` on any page would take the messages from whoever they are for."""
    video = make(tmp_path / "a.mp4", 5)
    with serving("megflow_video", "--uri-root", str(tmp_path)) as server:
        stream = start(server, video.name)
        ended(server, stream)
        for headers in (FOREIGN, PICTURE, VISIT, FRAME):
            assert take(server, stream, headers).status_code == 403
            assert server.client.get("/list", headers=headers).status_code == 403
            assert server.client.post(f"/start/{video.name}", headers=headers).status_code == 403
        taken = take(server, stream, {"sec-fetch-site": "same-origin"})
        assert len(taken.json()) == 5


@pytest.mark.parametrize("no_auth", [False, True])
def test_the_host_is_checked_on_loopback(no_auth: bool) -> None:
    """A name of somebody else's that leads to 127.0.0.1 makes his page one of this server, for browsers."""
    flags = ("--no-auth",) if no_auth else ()
    with serving("function", *flags, "--allow-host", "model.example") as server:
        for answer in (
            server.predict(7, headers={"host": "evil.example"}),
            server.client.get("/metrics", headers={"host": f"evil.example:{server.port}"}),
        ):
            assert answer.status_code == 403
            assert "--allow-host" in answer.text
        for host in ("localhost", f"127.0.0.1:{server.port}", "model.example"):
            assert server.predict(7, headers={"host": host}).status_code == 200
