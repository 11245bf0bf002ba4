"""Who may ask: tokens on every route, the addresses a server may bind, and what a page of another origin may do."""

from __future__ import annotations

import base64
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, unquote

import psutil
import pytest

from panglot import dialects
from panglot.dialects import discover
from panglot.settings import Settings
from panglot.web.access import key_file
from panglot.web.access.keys import RIGHT_FOR
from panglot.web.app import ROUTES
from panglot.web.contract import ADMIN, CONTROL, INFER, JOBS, METRICS, PUBLIC
from panglot.web.path_template import PathTemplate, template
from panglot.web.v2.routes import FORMS
from support import mlflow
from support.raw import post
from support.server import PACKAGES, ROOT, Server, panglot, serving
from support.wire import Reply, Wire

TOKEN = "a-Secret.Token_0123456789~+/="
FUNCTION = str(PACKAGES / "function")


def basic(password: str, user: str = "anyone") -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def authorization(value: str) -> dict[str, str]:
    return {"authorization": value}


RIGHT = authorization(f"Bearer {TOKEN}")
SECRETS = {right: key_file.new_secret() for right in key_file.RIGHTS}
"""Keys of which each is good for one thing."""


# A walk over all routes

SERVED = {
    "plain": "function",
    "tiinfer": "tiinfer_ops",
    "modelarts": "modelarts_echo",
    "evals": "evals_hello",
    "paddle": "paddle_steps",
    "megflow": "megflow_faults",
    "bare": str(ROOT / "examples" / "bare"),
    "triton": "triton_add_sub",
    "hfendpoint": "hfendpoint_echo",
    "azureml": "azureml_plain",
    "paieas": "paieas_echo",
    "truss": "truss_openai",
    "mlflow": "mlflow_any",
    "torchserve": "torchserve_echo",
    "sagemaker": "sagemaker_ops",
    "runpod": "runpod_ops",
    "cog": "cog_ops",
}
"""One package of every dialect; whoever adds a dialect adds its package here."""

SPELLED = (SERVED["evals"], SERVED["megflow"])
"""Those whose paths of models are spelled in every way: their platforms read paths in ways of their own."""
NAMES = {
    "/docs/{name}": "/docs/swagger-ui.css",
    "/pages/{name}": "/pages/panglot.css",
    "/samples/{name}": "/samples/x.png",
    "/progress/{name}": "/progress/some-request",
    "/status/{name}": "/status/some-request",
    **{
        path: path.replace("{id}", "some-job")
        for path in ("/jobs/{id}", "/jobs/{id}/result", "/jobs/{id}/events", "/jobs/{id}/retry")
    },
}
ENDLESS = "/status/events"
VARIANTS = (
    "{}/", "/{}", "{}//", "/.{}", "/x/..{}", "/%2e{}", "{}%2f", "{}%20", "{}%00", "{};a=b", "{}.json", "{}\\", "{}#",
    "{}?x", "//localhost{}",
)  # fmt: skip


def routes(package: str) -> list[tuple[str, str, str]]:
    """Method, path and declared access of everything a package's server answers to."""
    found = discover(PACKAGES / package)
    contract = dialects.contract(found, Settings())
    infer = [(method, route.sample(found.name), route.access) for route in contract.routes for method in route.methods]
    model = f"/v2/models/{quote(found.name)}"
    infer += [("POST", f"{model}{version}/{form}", INFER) for version in ("", "/versions/1") for form in FORMS]
    every = [page for page in (*ROUTES, *contract.pages) if page.path != ENDLESS]
    first = {(method, page.path): page for page in every for method in page.methods}
    places = {path: path.replace("/v2/models/{model}", model).replace("{version}", "1") for _, path in first}
    places = {path: place.replace("/models/{model}", f"/models/{found.name}") for path, place in places.items()}
    pages = [
        (method, NAMES.get(path, re.sub(r"\{\w+\}", "some", places[path])), page.access)
        for (method, path), page in first.items()
    ]
    own = [route for route in contract.routes if not route.is_free and route.path != "/"]
    own += contract.pages
    under = [
        (method, f"/models/{found.name}{re.sub(r'{[^}]+}', 'some', entry.path)}", entry.access)
        for entry in own for method in entry.methods
    ]  # fmt: skip
    # A platform's page has precedence over ours at the same path.
    covered = {(method, path) for method, path, _ in under}
    return infer + under + [entry for entry in pages if entry[:2] not in covered]


def job_routes(package: str) -> set[str]:
    """The paths at which a platform's own contract makes a job of every request, or of some."""
    found = discover(PACKAGES / package)
    made = [
        route for route in dialects.contract(found, Settings()).routes if route.job is not None and route.job.always
    ]
    starts = ("", f"/models/{found.name}")
    return {start + path for route in made for start in starts for path in (route.path, route.sample(found.name))}


def free_probes(package: str) -> list[tuple[str, PathTemplate]]:
    """Method and path of the platform's public pages with free segments, at the root and below the model's own path."""
    found = discover(PACKAGES / package)
    pages = [page for page in dialects.contract(found, Settings()).pages if page.access == PUBLIC and "{" in page.path]
    starts = ("", f"/models/{found.name}")
    return [(method, template(start + page.path)) for page in pages for method in page.methods for start in starts]


def test_every_dialect_is_walked() -> None:
    assert SERVED.keys() == dialects.known().keys()


FOREIGN = {"mlflow_any": mlflow.python}
"""Packages whose workers need an interpreter with more than ours has."""
WALKED = [
    pytest.param(package, id=name, marks=[pytest.mark.rest("needs mlflow")] if package in FOREIGN else [])
    for name, package in SERVED.items()
]


@pytest.fixture(scope="module", params=WALKED)
def walked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Server]]:
    flags = ("--python", FOREIGN[request.param]()) if request.param in FOREIGN else ()
    file = tmp_path_factory.mktemp("keys") / "keys.toml"
    file.write_text(
        "\n".join(key_file.written(f"for-{right}", SECRETS[right], [f'may = ["{right}"]']) for right in SECRETS)
    )
    with serving(request.param, *flags, "--keys", str(file), env={"PANGLOT_TOKEN": TOKEN}) as server:
        yield request.param, server


def ask(server: Server, method: str, path: str, given: str = "") -> Reply:
    """The path is sent as it stands: no client tidies it up."""
    lines = [f"Authorization: {given}"] if given else []
    with Wire(server) as client:
        client.send(post(b"{}", *lines, path=path).replace(b"POST", method.encode(), 1))
        return client.reply()


def test_every_route_keeps_its_declared_access(walked: tuple[str, Server]) -> None:
    """No token, a wrong one, the right one; as Bearer everywhere, as a password on pages for the operator."""
    package, server = walked
    for method, path, access in routes(package):
        assert access in (PUBLIC, INFER, JOBS, ADMIN, METRICS, CONTROL)
        if access == CONTROL:
            # Nobody may, whatever is given: the server was not started for it.
            assert {ask(server, method, path, given).status for given in ("", f"Bearer {TOKEN}")} == {403}
            continue
        for given in ("", "Bearer wrong", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", basic("wrong"), "Bearer"):
            answer = ask(server, method, path, given)
            assert (answer.status == 401) == (access != PUBLIC), (method, path, given, answer)
            if access != PUBLIC:
                assert answer.headers["www-authenticate"] == "Bearer"
        assert ask(server, method, path, f"Bearer {TOKEN}").status != 401
        assert (ask(server, method, path, basic(TOKEN)).status == 401) == (access in (INFER, JOBS))


def test_every_route_is_opened_by_a_key_that_is_good_for_it_alone(walked: tuple[str, Server]) -> None:
    package, server = walked
    jobs = job_routes(package)
    for method, path, access in routes(package):
        for right, secret in SECRETS.items():
            status = ask(server, method, path, f"Bearer {secret}").status
            if access == CONTROL:
                assert status == 403, (method, path, right)
            elif access != PUBLIC:
                assert status != 401, (method, path, right)
                # A job needs the right to use the model, and that to make jobs.
                if status == 403 and right == INFER and path in jobs:
                    continue
                assert (status == 403) == (right != RIGHT_FOR[access]), (method, path, right, status)


def test_no_spelling_of_a_path_avoids_the_token(walked: tuple[str, Server]) -> None:
    """Other cases, slashes and encodings of protected routes and aliases never reach anything."""
    package, server = walked
    public = {path for _, path, access in routes(package) if access == PUBLIC}
    free = free_probes(package)
    for method, path, access in routes(package):
        if access in (PUBLIC, CONTROL) or (path.startswith("/v2/models/") and package not in SPELLED):
            continue
        spellings = {variant.format(path) for variant in VARIANTS} | {path.upper(), path.title()}
        spellings |= {path.replace("/", "/%2e/", 1), path.replace("e", "%65"), path.replace("e", "%2565")}
        for spelling in spellings:
            for verb in {method, "GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"}:
                spelled = unquote(spelling.partition("?")[0])
                # A probe may be public for any name, and with it the names that look like another route.
                is_probe = any(of == verb and fits.match(spelled.encode()) is not None for of, fits in free)
                if spelled.lower() not in public and not is_probe:
                    answer = ask(server, verb, spelling)
                    # 403: a path of administration, which is off here.
                    assert answer.status in (400, 401, 403, 404, 405), (verb, spelling, answer)


def test_head_needs_the_token_as_well(walked: tuple[str, Server]) -> None:
    package, server = walked
    for method, path, access in routes(package):
        if method == "GET":
            # Routes that reach the script take the methods they name and no HEAD.
            refusals = (401, 405) if access == INFER else (401,)
            assert (server.client.head(path).status_code in refusals) == (access != PUBLIC)


# Giving a token


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    file = tmp_path_factory.mktemp("token") / "token"
    file.write_text(f"\n  {TOKEN}\n")
    with serving("results", "--token-file", str(file), "--access-log", "1", "--log-level", "debug") as running:
        yield running
    assert TOKEN not in running.log


@pytest.fixture(scope="module")
def by_variable() -> Iterator[Server]:
    with serving("function", env={"PANGLOT_TOKEN": TOKEN}) as running:
        yield running
    assert TOKEN not in running.log


ACCEPTED = ("Bearer {}", "bearer {}", "BEARER {}", "Bearer   {}")
MALFORMED = (
    "{}", "Bearer", "Bearer{}", "Token {}", "Bearer {} x", "Bearer x {}", "Bearer {},", 'Bearer "{}"', ", Bearer {}",
    "Basic {}", "Basic", "Basic ====", "Basic " + "A" * 5000, "Digest {}", "Bearer \xe9", "Bearer " + "x" * 5000,
)  # fmt: skip


def test_ways_to_give_the_token(server: Server) -> None:
    for form in ACCEPTED:
        answer = server.predict({"kind": "none"}, headers=authorization(form.format(TOKEN)))
        assert answer.status_code == 200, form
    for form in MALFORMED:
        headers = {"authorization": form.format(TOKEN).encode("latin-1")}
        for answer in (server.predict({}, headers=headers), server.client.get("/metrics", headers=headers)):
            assert answer.status_code == 401, form
            assert answer.json()["error"]["code"] == "unauthorized"


def test_the_body_of_a_stranger_is_not_read(server: Server) -> None:
    with Wire(server) as client:
        client.send(post(b"", "Content-Length: 60000000", "Expect: 100-continue"))
        assert client.reply().status == 401
        assert client.wait_closed()
    with Wire(server) as client:
        client.send(post(b"7") * 3)
        assert client.reply().status == 401
        assert client.wait_closed()
        assert client.data == b""


def test_the_token_is_nowhere_to_be_seen(server: Server, by_variable: Server) -> None:
    """Not in the log, whatever is logged; not in answers or on pages; not in the process table; not with the worker."""
    server.predict({"kind": "raise"}, headers=RIGHT)
    server.predict({"kind": "none"}, headers=authorization(f"Bearer {TOKEN}x"))
    for path in ("/", "/docs", "/openapi.json", "/metrics"):
        assert TOKEN not in server.client.get(path, headers=RIGHT).text
    server.wait_log("secret detail")
    for process in (psutil.Process(by_variable.process.pid), *by_variable.workers()):
        assert TOKEN not in " ".join(process.cmdline())
    for worker in by_variable.workers():
        assert TOKEN not in str(worker.environ())
        assert not [name for name in worker.environ() if name.startswith("PANGLOT_TOKEN")]


@pytest.mark.parametrize(("content", "words"), [(None, "cannot be read"), ("", "empty"), (" \n", "empty")])
def test_a_token_file_that_cannot_be_used(content: str | None, words: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_text(content)
    done = panglot("serve", FUNCTION, "--port", "0", "--token-file", str(file))
    assert done.returncode == 3
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_token_cannot_be_given_on_the_command_line() -> None:
    done = panglot("serve", FUNCTION, "--port", "0", "--token", TOKEN)
    assert done.returncode == 3
    assert "--token-file" in done.stderr


def test_the_feed_of_the_status_page_needs_the_token(server: Server) -> None:
    assert server.client.get(ENDLESS).status_code == 401
    with server.client.stream("GET", ENDLESS, headers=RIGHT) as answer:
        assert answer.status_code == 200


@pytest.mark.parametrize("token", [TOKEN, ""], ids=["beside a token", "by itself"])
def test_a_token_for_metrics_opens_metrics_alone(token: str, tmp_path: Path) -> None:
    file = tmp_path / "scraping"
    file.write_text("for-scraping\n")
    by_file = serving("function", "--metrics-token-file", str(file), env={"PANGLOT_TOKEN": token})
    by_variable = serving("function", env={"PANGLOT_TOKEN": token, "PANGLOT_METRICS_TOKEN": "for-scraping"})
    for started in (by_file, by_variable):
        with started as server:
            get = functools.partial(ask, server, "GET")
            assert get("/metrics", "Bearer for-scraping").status == 200
            assert get("/metrics", basic("for-scraping")).status == 200
            assert get("/metrics", "Bearer wrong").status == get("/metrics").status == 401
            assert get("/metrics", f"Bearer {token}").status == (200 if token else 401)
            assert get("/openapi.json", "Bearer for-scraping").status == (401 if token else 200)
            assert ask(server, "POST", "/predict", "Bearer for-scraping").status == (401 if token else 200)


# Addresses

OPEN = ("0.0.0.0", "::", "[::]", "")


@pytest.mark.parametrize("host", OPEN)
def test_an_address_others_can_reach_needs_a_decision(host: str) -> None:
    done = panglot("serve", FUNCTION, "--port", "0", "--host", host)
    assert done.returncode == 3
    assert "no token is set" in done.stderr
    assert "PANGLOT_TOKEN" in done.stderr
    assert "listening" not in done.stderr


DECISIONS = {
    "a token": ((), {"PANGLOT_TOKEN": TOKEN}, 401),
    "--no-auth": (("--no-auth",), {}, 200),
    "PANGLOT_NO_AUTH": ((), {"PANGLOT_NO_AUTH": "1"}, 200),
    "--no-auth beside a token": (("--no-auth",), {"PANGLOT_TOKEN": TOKEN}, 200),
}


@pytest.mark.parametrize(("flags", "env", "status"), DECISIONS.values(), ids=DECISIONS.keys())
def test_a_decision_opens_the_address(flags: tuple[str, ...], env: dict[str, str], status: int) -> None:
    with serving("function", "--host", "0.0.0.0", *flags, env=env) as server:
        answer = server.predict(7, headers={"host": "any.name.example:1"})
        assert answer.status_code == status
        assert server.predict(7, headers=RIGHT).status_code == 200
    assert ("plain HTTP" in server.log) == (status == 401)


def test_loopback_needs_none() -> None:
    for host in ("127.0.0.1", "localhost", "127.0.0.2"):
        with serving("function", "--host", host, ready=False) as server:
            server.wait_log("is ready")


# Host names and origins


@pytest.fixture(scope="module")
def local() -> Iterator[Server]:
    flags = ("--allow-host", "model.example,other.example", "--cors-origin", "https://app.example")
    with serving("function", *flags, "--max-body", "1000") as running:
        yield running


KNOWN = [
    "localhost",
    "LOCALHOST",
    "127.0.0.1",
    "[::1]",
    "localhost:1",
    "127.0.0.1:8080",
    "[::1]:8080",
    "model.example",
    "Model.Example:443",
    "other.example",
]
UNKNOWN = [
    "evil.example",
    "localhost.evil.example",
    "evil-localhost",
    "127.0.0.1.evil.example",
    "127.0.0.1@evil.example",
    "xmodel.example",
    "model.example.evil",
    "0.0.0.0",
    "[::2]",
    "localhost,evil.example",
    "[::1].evil.example",
    "[::1]x",
    "localhost:80:80",
    "localhost:x",
]


def test_host_names(local: Server) -> None:
    """Without a token only names of this machine and those allowed are answered to, on every route."""
    for host in KNOWN:
        assert local.predict(7, headers={"host": host}).status_code == 200, host
    for host in (*UNKNOWN, ""):
        for answer in (local.predict(7, headers={"host": host}), local.client.get("/metrics", headers={"host": host})):
            assert answer.status_code in (400, 403), host
            assert answer.json()["error"]["code"] in ("unknown_host", "bad_host")


def test_an_allowed_origin(local: Server) -> None:
    """A page that was allowed may ask beforehand, may POST, and may read what came of it, errors too."""
    origin = {"origin": "https://app.example"}
    asked = {**origin, "access-control-request-method": "POST", "access-control-request-headers": "content-type"}
    before = local.client.options("/predict", headers=asked)
    assert before.status_code == 204
    assert before.headers["access-control-allow-origin"] == "https://app.example"
    assert before.headers["access-control-allow-methods"] == "POST"
    assert "authorization" in before.headers["access-control-allow-headers"]
    big, bad = b" " * 2000, b"{"
    for content, status in ((b"7", 200), (bad, 400), (big, 413)):
        answer = local.predict(content=content, headers={**origin, "content-type": "application/json"})
        assert answer.status_code == status
        assert answer.headers["access-control-allow-origin"] == "https://app.example"
        assert answer.headers["vary"] == "origin"
    assert "access-control-allow-credentials" not in answer.headers


STRANGE = [
    "https://evil.example",
    "null",
    "http://app.example",
    "https://app.example.evil",
    "https://app.example:444",
    "https://xapp.example",
    "HTTPS://APP.EXAMPLE",
    "*",
    "file://",
    "https://app.example,https://evil.example",
]


def test_other_origins(local: Server) -> None:
    """Refused before the script runs, asked beforehand or not, whatever the content type says."""
    for origin in STRANGE:
        for kind in ("application/json", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
            answer = local.predict(content=b"7", headers={"origin": origin, "content-type": kind})
            assert answer.status_code == 403, origin
            assert answer.json()["error"]["code"] == "cross_origin"
            assert "access-control-allow-origin" not in answer.headers
        before = local.client.options("/predict", headers={"origin": origin, "access-control-request-method": "POST"})
        assert before.status_code == 403
        assert local.client.get("/metrics", headers={"origin": origin}).status_code == 403
    own = {"origin": f"http://127.0.0.1:{local.port}"}
    assert local.predict(7, headers=own).status_code == 200


def test_no_origin_is_allowed_by_default(by_variable: Server) -> None:
    for headers in (RIGHT, {}):
        answer = by_variable.predict(7, headers={**headers, "origin": "https://app.example"})
        assert not [name for name in answer.headers if name.startswith("access-control")]
    before = by_variable.client.options("/predict", headers={"origin": "https://app.example"})
    assert before.status_code == 405
    assert "access-control-allow-origin" not in before.headers


def test_an_origin_with_a_token() -> None:
    """A browser asks beforehand without the token, then sends it; without it the page can read why it was refused."""
    with serving("function", "--cors-origin", "https://app.example", env={"PANGLOT_TOKEN": TOKEN}) as server:
        origin = {"origin": "https://app.example"}
        assert (
            server.client.options("/predict", headers=origin).headers["access-control-allow-origin"] == origin["origin"]
        )
        allowed = server.predict(7, headers={**RIGHT, **origin})
        assert (allowed.status_code, allowed.headers["access-control-allow-origin"]) == (200, origin["origin"])
        refused = server.predict(7, headers=origin)
        assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, origin["origin"])
        evil = {"origin": "https://evil.example"}
        assert "access-control-allow-origin" not in server.client.options("/predict", headers=evil).headers
        assert "access-control-allow-origin" not in server.predict(7, headers={**RIGHT, **evil}).headers


def test_pages_are_closed_to_other_pages(local: Server) -> None:
    """The policy of the pages: nothing from elsewhere, nobody frames them, no guessing of types, nothing kept."""
    for path in ("/", "/docs"):
        headers = local.client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "base-uri 'none'" in policy
        assert "form-action 'none'" in policy
        assert "http" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
