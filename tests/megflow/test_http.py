"""The HTTP contract of ImageServer and BytesServer: one graph with three server nodes on three ports."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest
from PIL import Image

from support.server import Server, serving

LISTENING_TOO = re.compile(r"listening on (http://\S+) too, for (\w+)")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("megflow_servers", "--max-body", "2MB", "--max-pixels", "1000000") as running:
        yield running


@pytest.fixture(scope="module")
def clients(server: Server) -> Iterator[dict[str, httpx.Client]]:
    server.wait_count(" too, for ", 2)
    urls = {"picture": server.url} | {name: url for url, name in LISTENING_TOO.findall(server.log)}
    found = {name: httpx.Client(base_url=url, timeout=30) for name, url in urls.items()}
    yield found
    for client in found.values():
        client.close()


def encoded(kind: str = "PNG", mode: str = "RGB", size: tuple[int, int] = (6, 4), **options: object) -> bytes:
    picture = Image.fromarray(np.arange(size[0] * size[1] * 3, dtype=np.uint8).reshape(size[1], size[0], 3))
    out = io.BytesIO()
    picture.convert(mode).save(out, kind, **options)
    return out.getvalue()


IMAGE = {"content-type": "image/*"}


def ask(client: httpx.Client, body: bytes, extra: str = "any", **headers: str) -> httpx.Response:
    return client.post(f"/analyze/{extra}", content=body, headers=headers or IMAGE)


def test_every_server_node_listens_on_a_port_of_its_own(clients: dict[str, httpx.Client]) -> None:
    assert sorted(clients) == ["picture", "told", "words"]
    assert len({client.base_url.port for client in clients.values()}) == 3


# ImageServer


@pytest.mark.parametrize(
    ("kind", "mode"),
    [("PNG", "RGB"), ("PNG", "L"), ("PNG", "RGBA"), ("PNG", "P"), ("JPEG", "RGB"), ("BMP", "RGB"), ("GIF", "P"),
     ("WEBP", "RGB"), ("TIFF", "RGB"), ("PPM", "RGB"), ("TGA", "RGB"), ("ICO", "RGBA"), ("DDS", "RGB")],
)  # fmt: skip
def test_pictures_of_every_format(clients: dict[str, httpx.Client], kind: str, mode: str) -> None:
    size = (16, 16) if kind == "ICO" else (6, 4)
    options = {"sizes": [(16, 16)]} if kind == "ICO" else {}
    answer = ask(clients["told"], encoded(kind, mode, size, **options))
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["shape"] == [size[1], size[0], 3]
    assert found["dtype"] == "uint8"
    assert found["contiguous"]


@pytest.mark.document("megflow.18")
def test_blue_comes_first_and_sixteen_bits_are_reduced(clients: dict[str, httpx.Client]) -> None:
    assert ask(clients["told"], encoded()).json()["first"] == [2, 1, 0]
    out = io.BytesIO()
    Image.fromarray(np.full((2, 2), 0x7F00, np.uint16)).save(out, "PNG")
    assert ask(clients["told"], out.getvalue()).json()["first"] == [127, 127, 127]


def test_orientation_is_ignored(clients: dict[str, httpx.Client]) -> None:
    picture = Image.new("RGB", (6, 4))
    exif = picture.getexif()
    exif[0x0112] = 6
    out = io.BytesIO()
    picture.save(out, "JPEG", exif=exif)
    assert ask(clients["told"], out.getvalue()).json()["shape"] == [4, 6, 3]


@pytest.mark.document("megflow.25")
@pytest.mark.parametrize("extra", ["image_name", "a%20b", "a%2Fb", "a+b", "%E4%BD%A0", "bytes.jpg", "~!$&'()*,;=:@"])
def test_the_path_segment_arrives_as_it_was_written(clients: dict[str, httpx.Client], extra: str) -> None:
    assert ask(clients["told"], encoded(), extra).json()["extra"] == extra


@pytest.mark.parametrize(
    ("content_type", "status"),
    [("image/*", 200), ("image/jpeg", 200), ("image/png", 200), ("IMAGE/PNG", 200), ("application/octet-stream", 200),
     ("image/jpeg; q=1", 200), ("application/json", 404), ("text/plain", 404), ("multipart/form-data", 404),
     ("image", 400), ("image/", 400), ("/png", 400), ("\xe4", 400)],
)  # fmt: skip
def test_content_types(clients: dict[str, httpx.Client], content_type: str, status: int) -> None:
    answer = clients["told"].post(
        "/analyze/x", content=encoded(), headers={"content-type": content_type.encode("latin-1")}
    )
    assert answer.status_code == status
    if status == 404:
        assert answer.content == b""
    if status == 400:
        assert answer.headers["content-type"].startswith("text/plain")
        assert 'header "content-type"' in answer.text


def test_no_content_type(clients: dict[str, httpx.Client]) -> None:
    answer = clients["told"].post("/analyze/x", content=encoded())
    assert (answer.status_code, answer.text) == (400, 'Missing request header "content-type"')


@pytest.mark.parametrize("body", [b"", b"no picture", encoded()[:40], b"\xff\xd8\xff\xe0" + b"\0" * 50])
def test_what_is_no_picture(clients: dict[str, httpx.Client], server: Server, body: bytes) -> None:
    before = len(server.lines)
    answer = ask(clients["told"], body)
    assert answer.status_code == 500
    assert answer.text.startswith("Unhandled rejection: ")
    assert "Traceback" not in server.log_after(before)


def test_a_picture_beyond_the_limit_is_refused(clients: dict[str, httpx.Client]) -> None:
    out = io.BytesIO()
    Image.new("L", (3000, 3000)).save(out, "PNG")
    assert ask(clients["told"], out.getvalue()).status_code == 500
    assert ask(clients["told"], b"x" * 2_100_000).status_code == 413


@pytest.mark.document("megflow.11")
def test_text_is_sent_as_it_is(clients: dict[str, httpx.Client], server: Server) -> None:
    answer = ask(clients["told"], encoded())
    assert answer.headers["content-type"] == "application/json"
    before = len(server.lines)
    assert ask(clients["told"], encoded(), "bytes").status_code == 500
    server.wait_log("it must be a str, not bytes: use json.dumps", after=before)


@pytest.mark.document("megflow.13")
def test_a_picture_comes_back_as_jpeg(clients: dict[str, httpx.Client]) -> None:
    answer = ask(clients["picture"], encoded(size=(40, 20)))
    assert answer.headers["content-type"] == "image/jpeg"
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert answer.headers["accept-ranges"] == "bytes"
    picture = Image.open(io.BytesIO(answer.content))
    assert picture.size == (40, 20)
    assert picture.layer[0][1:3] == picture.layer[1][1:3], "no chroma subsampling"


def test_a_picture_of_another_size_is_not_scrambled(clients: dict[str, httpx.Client]) -> None:
    assert Image.open(io.BytesIO(ask(clients["picture"], encoded(), "smaller").content)).size == (3, 2)
    assert Image.open(io.BytesIO(ask(clients["picture"], encoded(), "view").content)).size == (6, 4)


@pytest.mark.parametrize(
    ("extra", "words"),
    [("text", 'add response = "json"'), ("nothing", "a dict with 'data'"), ("float", "must be a uint8 array")],
)
def test_what_is_no_picture_to_answer_with(
    clients: dict[str, httpx.Client], server: Server, extra: str, words: str
) -> None:
    before = len(server.lines)
    assert ask(clients["picture"], encoded(), extra).status_code == 500
    server.wait_log(words, after=before)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("POST", "/analyze/", 404), ("POST", "/analyze", 404), ("POST", "/analyze/a/b", 404), ("POST", "/other", 404),
     ("GET", "/analyze/x", 405), ("PUT", "/analyze/x", 405), ("GET", "/other", 404)],
)  # fmt: skip
def test_other_paths_and_methods(clients: dict[str, httpx.Client], method: str, path: str, status: int) -> None:
    answer = clients["told"].request(method, path, content=b"", headers=IMAGE)
    assert answer.status_code == status
    if status == 404:
        assert "there is no" in answer.text


@pytest.mark.document("megflow.19")
def test_requests_are_numbered_and_run_at_once(clients: dict[str, httpx.Client]) -> None:
    def one(size: int) -> list[int]:
        found = ask(clients["told"], encoded(size=(size, 4))).json()
        return [found["shape"][1], found["number"]]

    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(one, range(1, 61)))
    assert [size for size, _ in found] == list(range(1, 61)), "every client got its own answer"
    assert len({number for _, number in found}) == 60


# BytesServer


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/json", "image/*", "nonsense"])
def test_bytes_of_any_type(clients: dict[str, httpx.Client], content_type: str) -> None:
    headers = {"content-type": content_type} if content_type else {}
    answer = clients["words"].post("/analyze/bytes", content=b"some bytes", headers=headers)
    assert (answer.status_code, answer.content) == (200, b"SOME BYTES")
    assert answer.headers["content-type"] == "application/octet-stream"


def test_no_bytes_at_all(clients: dict[str, httpx.Client]) -> None:
    assert clients["words"].post("/analyze/bytes", content=b"").content == b""


def test_only_its_own_path(clients: dict[str, httpx.Client]) -> None:
    assert clients["words"].post("/analyze/other", content=b"x").status_code == 404


# Around them


def test_the_graph_can_be_looked_at(server: Server, clients: dict[str, httpx.Client]) -> None:
    for _ in range(3):
        clients["words"].post("/analyze/bytes", content=b"x")
    from support.server import wait_until

    wait_until(lambda: server.metric("panglot_graph_messages_total", node="upper", port="inp") >= 3)
    found = clients["words"].get("/graph").json()
    assert found["main"] == "several"
    assert {"cap": 16, "ports": ["words:out", "upper:inp"]} in found["graphs"][0]["connections"]
    upper = next(node for node in found["workers"][0]["nodes"] if node["name"] == "upper")
    assert upper["inputs"]["inp"]["cap"] == 16
    assert server.metric("panglot_graph_queue_capacity", node="upper", port="inp") == 16


def test_health_on_every_port(clients: dict[str, httpx.Client]) -> None:
    assert {client.get("/v2/health/ready").status_code for client in clients.values()} == {200}


@pytest.mark.document("megflow.27")
def test_the_documents_name_each_ports_own_route(clients: dict[str, httpx.Client]) -> None:
    paths = {name: client.get("/openapi.json").json()["paths"] for name, client in clients.items()}
    assert "/analyze/{extra_data}" in paths["picture"]
    assert "/analyze/bytes" in paths["words"]
    body = paths["picture"]["/analyze/{extra_data}"]["post"]["requestBody"]
    assert body["required"]
    assert body["content"]["image/*"]["schema"] == {"type": "string", "format": "binary"}
    answer = paths["picture"]["/analyze/{extra_data}"]["post"]["responses"]["200"]
    assert list(answer["content"]) == ["image/jpeg"]
    told = paths["told"]["/analyze/{extra_data}"]["post"]["responses"]["200"]
    assert list(told["content"]) == ["application/json"]
