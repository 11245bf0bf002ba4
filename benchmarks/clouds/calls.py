"""The Python calls of one request, by the platform's own functions; the loop and the bare server both make them."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

Headers = Iterable[tuple[bytes, bytes]]


class Answer(NamedTuple):
    """What the calls gave: a status, the headers that the script or the platform's functions set, and the body."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


Call = Callable[[bytes, Headers], Answer]
JSON = [(b"content-type", b"application/json")]


def of_mlflow(package: str) -> Call:
    from mlflow.pyfunc import load_model, scoring_server

    model = load_model(package)
    schema = model.metadata.get_input_schema()

    def call(body: bytes, headers: Headers) -> Answer:
        made = scoring_server.invocations(body.decode(), "application/json", model, schema)
        return Answer(made.status, JSON, made.response.encode())

    return call


def of_schema(package: str) -> Call:
    run = _script(package).run
    return lambda body, headers: Answer(200, JSON, json.dumps(run(**json.loads(body))).encode())


def of_raw(package: str) -> Call:
    from flask import Flask, request

    run, app = _script(package).run, Flask("score")
    same = {
        "REQUEST_METHOD": "POST", "SCRIPT_NAME": "", "PATH_INFO": "/score", "QUERY_STRING": "",
        "SERVER_NAME": "127.0.0.1", "SERVER_PORT": "5001", "SERVER_PROTOCOL": "HTTP/1.1", "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http", "wsgi.errors": sys.stderr, "wsgi.multithread": False, "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }  # fmt: skip

    def call(body: bytes, headers: Headers) -> Answer:
        environ = {**same, "wsgi.input": io.BytesIO(body)}
        for name, value in headers:
            key = name.decode("latin-1").upper().replace("-", "_")
            environ[key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else "HTTP_" + key] = value.decode("latin-1")
        with app.request_context(environ):
            response = run(request)
            pairs = [(name.lower().encode(), value.encode()) for name, value in response.headers]
            return Answer(response.status_code, pairs, response.get_data())

    return call


def _script(package: str) -> Any:
    sys.path.insert(0, package)
    import score

    score.init()
    return score


KINDS: dict[str, Callable[[str], Call]] = {"mlflow": of_mlflow, "schema": of_schema, "raw": of_raw}
