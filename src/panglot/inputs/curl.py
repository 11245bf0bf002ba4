"""A request as a line of curl."""

from __future__ import annotations

import contextlib
import functools
import json
import shlex
from typing import Any

from panglot.inputs.base import JSON, Base64, Body, ClientRequest, File, Form, Nothing, Whole, Zeros, media_type
from panglot.settings.loopback import UNIX

LONGEST = 160
"""The most characters of JSON that a command line shows."""
TOKEN = ' -H "Authorization: Bearer $PANGLOT_TOKEN"'  # noqa: S105  the name of a variable


def curl(base: str, request: ClientRequest, token: bool = False) -> str:
    """The line that sends `request` to the server at `base`; with `token`, also the token in PANGLOT_TOKEN."""
    method = "" if request.method == "POST" and not isinstance(request.body, Nothing) else f" -X {request.method}"
    method = " -N" + method if request.streams else method
    headers = "".join(f" -H {shlex.quote(f'{name}: {value}')}" for name, value in request.headers.items())
    before, body = _body(request.body)
    where, base = _socket(base)
    return f"{before}curl{where}{method}{TOKEN if token else ''}{headers}{body} {shlex.quote(base + request.path)}"


def _socket(base: str) -> tuple[str, str]:
    """The option that names the Unix socket of a base such as unix:PATH, and the address to use with it."""
    path = base.removeprefix(UNIX)
    return ("", base) if path == base else (f" --unix-socket {shlex.quote(path)}", "http://localhost")


def _body(body: Body) -> tuple[str, str]:
    """The words in front of curl on the line, and curl's options."""
    if isinstance(body, Form):
        return "", "".join(f" -F {shlex.quote(field)}" for field in _form_fields(body))
    if isinstance(body, Nothing):
        return "", ""
    if isinstance(body, Whole):
        header = f"Content-Type: {body.type or media_type(body.file)}"
        return "", f" -H {shlex.quote(header)} --data-binary {shlex.quote(f'@{body.file}')}"
    if isinstance(body, Zeros):
        return f"head -c {body.size} /dev/zero | ", f" -H 'Content-Type: {body.type}' --data-binary @-"
    header = f" -H 'Content-Type: {JSON}'"
    text, files = _json(body.value)
    if not files:
        return "", f"{header} -d {shlex.quote(text)}"
    # A format of printf, in which each file is a %s.
    pattern = text.replace("\\", "\\\\").replace("%", "%%").replace(MARK, "%s")
    contents = " ".join(f'"$(base64 -w0 {shlex.quote(str(entry.file))})"' for entry in files)
    return f"printf {shlex.quote(pattern)} {contents} | ", f"{header} --data-binary @-"


def json_text(value: Any) -> str:
    """The JSON as a line of curl shows it, with short marks for files."""
    return _json(value)[0]


MARK = "\ufffd*\ufffd"
"""Stands for a file's bytes in JSON, until they are replaced: no real value has these characters."""


def _json(value: Any) -> tuple[str, list[Base64]]:
    """The text of a value, with a mark for each file, and the files. Lone surrogates, which no terminal shows, are
    escaped."""
    for plain in (False, True):
        files: list[Base64] = []
        mark = functools.partial(_mark, files=files)
        text = json.dumps(value, default=mark, separators=(",", ":"), ensure_ascii=plain)
        if plain:
            return text.replace(json.dumps(MARK)[1:-1], MARK), files
        with contextlib.suppress(UnicodeEncodeError):
            text.encode()
            return text, files
    raise AssertionError


def _mark(value: Any, files: list[Base64]) -> str:
    if not isinstance(value, Base64):
        raise TypeError(f"JSON cannot hold a value of type {type(value).__name__}")
    files.append(value)
    return value.prefix + MARK


def _form_fields(form: Form) -> list[str]:
    fields = []
    for name, files in form.files.items():
        several = [files] if isinstance(files, File) else files
        fields += [f"{name}=@{file}" for file in several]
    return [*fields, *(f"{name}={text}" for name, text in form.fields.items())]
