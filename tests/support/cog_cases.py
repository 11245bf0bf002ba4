"""Requests of the package cog_cases and what is answered, in the manner of Cog's own integration tests.

`cog/test_cases.py` asks Panglot, and `cog/test_side_by_side.py` the old server, but for the cases that it answers
otherwise.
"""

from __future__ import annotations

from typing import Any, NamedTuple

NONE = "none is not an allowed value", "type_error.none.not_allowed"
NO_BOOL = "value could not be parsed to a boolean", "type_error.bool"


class Good(NamedTuple):
    """A prediction that succeeds."""

    given: dict[str, Any]
    output: Any
    differs: bool = False
    """Whether the old server answers otherwise."""


class Refused(NamedTuple):
    """Inputs that are refused with 422: which one, why, and by which type of pydantic 1."""

    given: dict[str, Any]
    field: str
    message: str
    type: str
    differs: bool = False


def case(name: str, output: Any, differs: bool = False, **given: Any) -> Good:
    return Good({"case": name, **given}, output, differs)


def taken(output: Any, differs: bool = False, **given: Any) -> Good:
    """An input as the script gets it."""
    (name,) = given
    place = ("text", "whole", "real", "flag", "texts", "wholes").index(name)
    values = ["x", 1, 1.0, False, ["a"], []]
    values[place] = output
    return Good({"case": "inputs", **given}, values, differs)


GOOD = {
    # Inputs: their defaults, and what is cast.
    "defaults": case("inputs", ["x", 1, 1.0, False, ["a"], []]),
    "types": case("types", ["str", "int", "float", "bool", "list"], whole=3.0, real=2, flag=1),
    "a whole number for a text": taken("3", text=3),
    "a number for a text": taken("1.5", text=1.5),
    "an empty text": taken("", text=""),
    "a text with every kind of character": taken('ü 中 😀 " \\ \n', text='ü 中 😀 " \\ \n'),
    "a text for a whole number": taken(7, whole="7"),
    "a negative text for a whole number": taken(-7, whole="-7"),
    "a number without a fraction": taken(7, whole=7.0),
    "a large whole number": taken(2**53, whole=2**53),
    "a text for a number": taken(1.5, real="1.5"),
    "a whole number for a number": taken(2.0, real=2),
    "a text for true": taken(True, flag="true"),
    "another text for true": taken(True, flag="on"),
    "a text for false": taken(False, flag="no"),
    "a number for true": taken(True, flag=1),
    "a list": taken(["b", "c"], texts=["b", "c"]),
    "an empty list": taken([], texts=[]),
    "numbers for texts": taken(["1", "b"], texts=[1, "b"]),
    "texts for numbers": taken([1, 2], wholes=["1", 2]),
    "unknown inputs": Good({"case": "inputs", "more": 1, "another": {}}, ["x", 1, 1.0, False, ["a"], []]),
    "a text of megabytes": case("long", "y" * 3_000_000 + "!", text="y" * 3_000_000),
    # Files.
    "a file of a type": case("named", ["file.txt", ".txt", "hi", True, True], path="data:text/plain;base64,aGk="),
    "a file with parameters": case("opened", "hi", file="data:text/plain;charset=utf-8;base64,aGk="),
    "a file that is no base64": case("opened", "a b", file="data:text/plain,a%20b"),
    "an empty file": case("opened", "", file="data:text/plain;base64,", differs=True),
    "a picture": case("length", [True, ".png", 2], path="data:image/png;base64,aGk="),
    "bytes": case("length", [True, ".bin", 2], path="data:application/octet-stream;base64,aGk="),
    "a type that nobody knows": case("length", [True, "", 2], path="data:application/x-own;base64,aGk="),
    # Where it runs.
    "the place": case("place", [True, "from a module beside", 1, True]),
    "signals": case("signals", True),
    "paths": case("joined", ["/tmp/a/b.txt", True, "b.txt", True, "/tmp/a/b.x"]),
    # Outputs.
    "enums": case("enums", ["red", "hello"]),
    "moments": case("moments", ["2026-01-02T03:04:05", "2026-01-02T00:00:00+00:00"]),
    "arrays": case("arrays", {"array": [[0, 1], [2, 3]], "number": 1.5, "whole": 3}, differs=True),
    "containers": case("containers", {"set": [1], "tuple": [1, "a", None], "frozen": ["b"], "made": ["c", "d"]}),
    "deep": case("deep", {"a": [{"b": [[1, 2], {"c": None}]}], "d": {"e": {"f": True}}}),
    "a dataclass": case("dataclass", {"point": {"x": 1, "y": 2.5}, "points": [{"x": 0, "y": 0.0}]}, differs=True),
    "texts": case("texts", ["", "ü 中 😀", 'quote " and \\', "a\nb\tc"]),
    "numbers": case("numbers", [0, -1, 2**53, 1.5, 1e300, -0.5, True]),
    "nothing": case("nothing", None),
    "a file": case("picture", "data:image/png;base64,iVBORw=="),
    "files": case(
        "pictures",
        {
            "one": "data:image/jpeg;base64,MQ==",
            "more": ["data:image/gif;base64,Mg==", "data:application/octet-stream;base64,Mw=="],
        },
        differs=True,
    ),
}
FAILED = {
    "a message": ("value_error", {"text": "no"}, "no"),
    "a message of many lines": ("value_error", {"text": "a\nb"}, "a\nb"),
    "a key": ("key_error", {}, "'missing'"),
    "an error of its own": ("own_error", {}, "of its own"),
    "an error after another": ("chained", {}, "while it predicted"),
    "an error after a print": ("prints_and_fails", {}, "failed"),
}
"""The case, its inputs, and the error of the failed prediction."""
REFUSED = {
    "nothing": Refused({}, "case", "field required", "value_error.missing"),
    "null for a text": Refused({"text": None}, "text", *NONE),
    "null for a number": Refused({"whole": None}, "whole", *NONE),
    "a dict for a text": Refused({"text": {}}, "text", "str type expected", "type_error.str"),
    "a list for a text": Refused({"text": []}, "text", "str type expected", "type_error.str"),
    "a text that is no whole number": Refused(
        {"whole": "1.5"}, "whole", "value is not a valid integer", "type_error.integer"
    ),
    "a list for a whole number": Refused({"whole": [1]}, "whole", "value is not a valid integer", "type_error.integer"),
    "a text that is no number": Refused({"real": "x"}, "real", "value is not a valid float", "type_error.float"),
    "a text that is no bool": Refused(
        {"flag": "maybe"}, "flag", *NO_BOOL
    ),
    "a number that is no bool": Refused({"flag": 2}, "flag", *NO_BOOL),
    "a text for a list": Refused({"texts": "a"}, "texts", "value is not a valid list", "type_error.list"),
    "a path of the machine": Refused(
        {"path": "/etc/hostname"}, "path", "'' is not a valid URL scheme. 'data', 'http', or 'https' is supported.",
        "value_error",
    ),
    "an address of a file": Refused(
        {"path": "file:///etc/hostname"}, "path",
        "'file' is not a valid URL scheme. 'data', 'http', or 'https' is supported.", "value_error",
    ),
    "an address for an open file": Refused(
        {"file": "ftp://example.com/a"}, "file",
        "'ftp' is not a valid URL scheme. 'data', 'http', or 'https' is supported.", "value_error",
    ),
    "a number for a file": Refused({"path": 1}, "path", "", "", differs=True),
    "a data URL without a comma": Refused({"path": "data:text/plain;base64"}, "path", "data URL", "value_error", True),
    "a data URL that is no base64": Refused({"path": "data:;base64,@@"}, "path", "data URL", "value_error", True),
}  # fmt: skip
