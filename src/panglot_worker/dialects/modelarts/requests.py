"""What a script gets for a request (docs/dialects/modelarts.md has the table).

Parsed JSON if it is not empty, else form fields and files, else nothing usable; then the query string over the top.
The platform's document sends JSON with `curl -d`, which calls it a form, and promises the script a dict: so a JSON
object or array in a body that is called a form, or nothing at all, is JSON too.
"""

from __future__ import annotations

import io
import os
from typing import Any, Dict, Iterable, List, Tuple
from urllib.parse import quote, unquote_to_bytes

from panglot_worker.bodies import jsontext, multipart
from panglot_worker.bodies.jsondepth import too_deep
from panglot_worker.bodies.multipart import Body, Limits
from panglot_worker.errors import ClientError
from panglot_worker.line.wire import Head

JSON, FORM, URLENCODED = "application/json", "multipart/form-data", "application/x-www-form-urlencoded"


class Unusable(ClientError):
    """There is no JSON, form or file in the request: MR.0101."""


class NotJson(ClientError):
    """A body that is said to be JSON is not."""


class NoPlaceForQuery(Exception):
    """The query string cannot be put over a body that is no object. The platform failed here, outside of its rules."""


def parse(head: Head, body: Body, limits: Limits) -> Any:
    """The `data` of a script. Raises the exceptions above, and ClientError beyond a limit."""
    content_type = head.content_type.decode("latin-1")
    media = content_type.partition(";")[0].strip().lower()
    data = _read(media, content_type, body, limits)
    # An empty object or list counts as no input too, as on the platform.
    if not data:
        raise Unusable(_unusable(media))
    if head.query:
        _overwrite(data, _first(_pairs(head.query, limits)))
    return data


def _read(media: str, content_type: str, body: Body, limits: Limits) -> Any:
    """The value of a body by its type; None where that type is not read."""
    if media == JSON or (media.startswith("application/") and media.endswith("+json")):
        return _json(body, limits)
    if media in (FORM, URLENCODED, "") and bytes(body[:64]).lstrip()[:1] in (b"{", b"["):
        try:
            return _json(body, limits)
        except NotJson as error:
            if not media:
                raise Unusable(error.message) from None
    if media == FORM:
        return _form(content_type, body, limits)
    return _first(_pairs(bytes(body), limits)) if media == URLENCODED else None


def _unusable(media: str) -> str:
    if media in (FORM, URLENCODED) or "json" in media:
        return "the %s body holds nothing" % media
    return "a body of type %s is not read; send %s or %s" % (media or "nothing", JSON, FORM)


def _json(body: Body, limits: Limits) -> Any:
    if len(body) > limits.json_bytes:
        raise ClientError("the JSON body is larger than max_json, %d bytes" % limits.json_bytes, 413)
    try:
        return jsontext.loads(body, limits.json_depth)
    except ClientError as error:
        raise NotJson(error.message, error.status) from None


def _form(content_type: str, body: Body, limits: Limits) -> Dict[str, Any]:
    """Text fields, the first of each name; then files by key and file name, which replace text of the same key."""
    try:
        parts = multipart.parse(content_type, body, limits)
    except ClientError as error:
        if error.status == 400:
            raise Unusable(error.message) from None
        raise
    data: Dict[str, Any] = {}
    for part in parts:
        if part.filename is None:
            data.setdefault(part.name, str(part.data, "utf-8", "replace"))
    files: Dict[str, Dict[str, io.BytesIO]] = {}
    for part in parts:
        if part.filename is not None:
            # This copies: the part is a view of the body, whose memory goes back with the answer.
            files.setdefault(part.name, {})[part.filename] = io.BytesIO(part.data)
    data.update(files)
    return data


def _pairs(text: bytes, limits: Limits) -> List[Tuple[str, str]]:
    if text.count(b"&") >= limits.form_fields:
        raise ClientError("the form has more than %d fields" % limits.form_fields, 413)
    pairs = []
    for field in text.replace(b"+", b" ").split(b"&"):
        if field:
            name, _, value = (unquote_to_bytes(side).decode("utf-8", "replace") for side in field.partition(b"="))
            pairs.append((name, value))
    return pairs


def _first(pairs: Iterable[Tuple[str, str]]) -> Dict[str, str]:
    data: Dict[str, str] = {}
    for name, value in pairs:
        data.setdefault(name, value)
    return data


def _overwrite(data: Any, query: Dict[str, str]) -> None:
    if query and not isinstance(data, dict):
        raise NoPlaceForQuery("a query string cannot be put over a JSON %s" % type(data).__name__)
    if query:
        data.update(query)


def raw(body: Body, limits: Limits) -> Tuple[bytes, Any]:
    """The body as bytes and the JSON value in it, for engines whose scripts read it themselves. Raises NotJson."""
    whole = bytes(body)
    # Before the parser: from there it would be one more body that is not JSON, and not one beyond a limit.
    if too_deep(whole, limits.json_depth) >= 0:
        raise ClientError("the JSON text is nested deeper than %d levels" % limits.json_depth)
    return whole, _json(whole, limits)


def upload(name: str, content: bytes) -> Tuple[str, bytes]:
    """The content type and the body of a form with one file."""
    # At random: a sender of the content must not be able to end its part of the form.
    mark = b"panglot-" + os.urandom(16).hex().encode()
    called = quote(name, safe=" ./-_").encode()
    head = b'--%s\r\nContent-Disposition: form-data; name="%s"; filename="%s"\r\n\r\n' % (mark, called, called)
    return "%s; boundary=%s" % (FORM, mark.decode()), b"%s%s\r\n--%s--\r\n" % (head, content, mark)


def inputs(data: Any, names: List[str]) -> List[Any]:
    """The list an MXNet script gets: one element per input of the signature, files as bytes."""
    if not isinstance(data, dict):
        return data if isinstance(data, list) else [data]
    chosen = [data[name] for name in names if name in data] or list(data.values())
    return [next(iter(value.values())).getvalue() if _is_upload(value) else value for value in chosen]


def _is_upload(value: Any) -> bool:
    return isinstance(value, dict) and bool(value) and isinstance(next(iter(value.values())), io.BytesIO)
