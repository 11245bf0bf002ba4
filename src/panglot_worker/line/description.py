"""The description of a script's API, which a worker sends in READY: the one definition both sides import.

`Dialect.describe` returns a `Description`. The front shows it in `/openapi.json`, on the playground and in the lines
of curl, and answers questions about metadata of the Open Inference Protocol with it. Every key is optional.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple, TypedDict

JSON_KIND, FILE_KIND, FORM_KIND, VIDEO_KIND = "json", "file", "form", "video"


class ExampleRequest(TypedDict, total=False):
    """A request that the script takes; of uploads only name and type."""

    kind: str
    """`json`, `file` (the whole body is one file), `form`, or `video` (a file, or the name of one)."""
    value: Any
    """For `json`: the value."""
    type: Optional[str]
    """For `file`: its media type."""
    name: str
    """For `file` and `video`: a file of the package that can be sent; empty where there is none."""
    files: Dict[str, str]
    """For `form`: the media type of every upload, by field."""
    names: Dict[str, str]
    """For `form`: a file of the package that can be sent, by field."""
    fields: List[str]
    """For `form`: the fields that are texts."""
    values: Dict[str, str]
    """For `form`: the texts, as far as they are known."""
    may_be_named: bool
    """For `video`: whether clients may send the name of a file instead of the file."""
    guessed: bool
    """Whether it is made up of type hints: it has the form of a request, and means nothing."""


class TensorDescription(TypedDict):
    """The tensors of a script, for the Open Inference Protocol. The worker adds it; a dialect does not."""

    inputs: List[Dict[str, Any]]
    outputs: List[Dict[str, Any]]
    platform: str
    rows: bool
    """Whether the first size of every tensor counts rows."""
    needs: Optional[List[str]]
    """The inputs that every request must have, where inputs of other names or types are refused; None: they are not."""


class RouteDescription(TypedDict, total=False):
    """What one route takes and gives."""

    entry: str
    """The function or class that answers, as its author calls it."""
    stages: List[str]
    """The stages the script has beside the inference."""
    summary: str
    """What the author wrote about it."""
    request_schema: Dict[str, Any]
    """A JSON schema of the request; uploads have `format: binary`. Empty: anything."""
    path_schema: Dict[str, Any]
    """A JSON schema of the free segments of the path."""
    without_body: bool
    """Whether the route takes no body."""
    request_types: List[str]
    """The media types of a request, where the schema does not imply them."""
    files_in_json: bool
    """Whether the uploads of the schema may come inside of JSON too, as base64."""
    response_schema: Dict[str, Any]
    """A JSON schema of the answer. Empty: anything."""
    example: Optional[ExampleRequest]
    streams: bool
    """Whether the answer comes in parts."""
    any_status: bool
    """Whether the script may choose the status of its answer."""


class Description(RouteDescription, total=False):
    """What a script takes and gives: its first route, and further facts about all its routes."""

    routes: Dict[str, RouteDescription]
    """The routes by path, where there are several."""
    tensors: TensorDescription
    bytes: int
    """How many bytes a body of zeros has that the script takes; 0: it takes no such body."""
    autolog: Dict[str, Any]
    """What `panglot bench` writes into a report in the form of the tool auto_log."""
    platform: Dict[str, Any]
    """For the front half of the dialect, such as a document in the form of its platform."""


ROUTE_KEYS: Dict[str, Tuple[type, ...]] = {
    "entry": (str,), "stages": (list,), "summary": (str,), "request_schema": (dict,), "request_types": (list,),
    "files_in_json": (bool,), "response_schema": (dict,), "example": (dict, type(None)), "streams": (bool,),
    "any_status": (bool,), "path_schema": (dict,), "without_body": (bool,),
}  # fmt: skip
KEYS: Dict[str, Tuple[type, ...]] = {
    **ROUTE_KEYS, "routes": (dict,), "tensors": (dict,), "bytes": (int,), "autolog": (dict,), "platform": (dict,),
}  # fmt: skip
EXAMPLE_KEYS: Dict[str, Tuple[type, ...]] = {
    "kind": (str,), "value": (object,), "type": (str, type(None)), "name": (str,), "files": (dict,), "names": (dict,),
    "fields": (list,), "values": (dict,), "may_be_named": (bool,), "guessed": (bool,),
}  # fmt: skip
NEEDED = {JSON_KIND: ("value",), FILE_KIND: ("type",), FORM_KIND: ("files", "fields"), VIDEO_KIND: ("name",)}
"""The keys that an example of a kind must have."""


def problems(description: Any) -> Iterator[str]:
    """The faults of a description, each in a sentence."""
    if not isinstance(description, dict):
        yield "it is %s, not a dict" % type(description).__name__
        return
    yield from _misfits(description, KEYS, "")
    yield from _wrong_example(description.get("example"), "")
    routes = description.get("routes")
    for path, route in routes.items() if isinstance(routes, dict) else ():
        where = "routes[%r]." % path
        if isinstance(route, dict):
            yield from _misfits(route, ROUTE_KEYS, where)
            yield from _wrong_example(route.get("example"), where)
        else:
            yield "%s is %s, not a dict" % (where[:-1], type(route).__name__)


def _misfits(given: Mapping[Any, Any], keys: Mapping[str, Tuple[type, ...]], where: str) -> Iterator[str]:
    for name, value in given.items():
        kinds = keys.get(name)
        if kinds is None:
            yield "nobody reads %s%s; the keys are %s" % (where, name, ", ".join(keys))
        elif not isinstance(value, kinds):
            wanted = " or ".join(kind.__name__.replace("NoneType", "None") for kind in kinds)
            yield "%s%s is %s, not %s" % (where, name, type(value).__name__, wanted)


def _wrong_example(example: Any, where: str) -> Iterator[str]:
    if not isinstance(example, dict):
        return
    yield from _misfits(example, EXAMPLE_KEYS, where + "example.")
    kind = example.get("kind")
    if kind not in NEEDED:
        yield "%sexample.kind is %r, not one of %s" % (where, kind, ", ".join(NEEDED))
        return
    for name in NEEDED[kind]:
        if name not in example:
            yield "%sexample has no %s, which one of kind %s needs" % (where, name, kind)
