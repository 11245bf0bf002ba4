"""The toolkit's own Transformer and Panglot on the same scripts and bodies: status, content type and body.

A case that differs names the row of docs/dialects/sagemaker.md that says why.
"""

from __future__ import annotations

import json
from io import BytesIO

import httpx
import numpy as np
import pytest

from support import originals, sagemaker
from support.originals import Answer, Case
from support.server import Server, serving

pytestmark = pytest.mark.rest("installs sagemaker-inference")
JSON = "application/json"


def sent(content: bytes | str, kind: str = JSON, accept: str = "", differs: str = "", **headers: str) -> Case:
    lines = {**({"Content-Type": kind} if kind else {}), **({"Accept": accept} if accept else {}), **headers}
    return Case("POST", "/invocations", content, lines, differs=differs)


def order(op: str, accept: str = "", **more: object) -> Case:
    return sent(json.dumps({"op": op, **more}), accept=accept)


def npy(values: object, **options: object) -> bytes:
    stream = BytesIO()
    np.save(stream, np.array(values, **options), allow_pickle=True)
    return stream.getvalue()


OPS = [
    *(order(op) for op in ("about", "tuple", "accept", "bytes", "dict", "list", "none", "number", "happened")),
    *(order(op) for op in ("codecs", "silent", "toolkit", "raise in input_fn", "answer headers")),
    order("raise", text="no\nway"),
    order("sum", values=[1, 2]),
    order("accept", accept="*/*"),
    order("accept", accept="text/csv"),
    sent('{"op": "accept"}', accept="application/json, text/plain, */*", differs="Accept with `*/*` among others"),
    order("accept", accept="image/png, text/csv"),
    sent("1,2", "text/csv"),
    sent(b"\x89PNG", "image/png"),
    sent('{"op": "about"}', JSON + "; charset=utf-8"),
    sent('{"op": "about"}', ""),
    sent("1,2", "", ContentType="text/csv"),
    sent("", JSON),
    sent("{", JSON),
    sent(b"\xff", JSON),
    sent("{}", JSON),
]
DEFAULTS = [
    sent("[[1, 2]]"),
    sent("[[1.5, 2]]", accept="text/csv"),
    sent("1,2\n3,4", "text/csv", "text/csv"),
    sent("1,2\n3,4", "text/csv"),
    sent("a,b\n1,2", "text/csv", "text/csv"),
    sent("[1, 2, 3]"),
    sent(npy([[1.5, 2]]), "application/x-npy"),
    sent(npy([[1.5, 2]]), "application/x-npy", "application/x-npy"),
    sent(npy([[1, 2], [3, 4]], order="F"), "application/x-npy"),
    sent(npy([{"a": 1}], dtype=object), "application/x-npy", differs="Arrays of objects in npy"),
    sent("[[1]]", "text/plain"),
    sent("[[1]]", JSON + "; charset=utf-8"),
    sent("[[1]]", ""),
    sent("[[1]]", accept="image/png"),
    sent("[[1]]", accept="image/png, text/csv"),
    sent("[[1], [2, 3]]"),
    sent("{"),
    sent("", JSON),
    sent("[1, 2, 3, 4, 5]", differs="NaN in answers"),
]
TRANSFORM = [
    sent("abc", "text/csv", **{"content-length": "3"}),
    sent(b"\x00", "image/png", "image/png", **{"content-length": "1"}),
    sent("raise", "text/csv", **{"content-length": "5"}),
]


def ours(server: Server, case: Case) -> Answer:
    with httpx.Client(headers={}) as client:
        request = client.build_request("POST", server.url + case.path, content=case.content, headers=dict(case.headers))
        if "Accept" not in case.headers:
            del request.headers["accept"]
        answer = client.send(request)
    kind = answer.headers.get("content-type")
    return Answer(answer.status_code, {"content-type": (kind,) if kind else ()}, answer.content)


def compare(original: Answer, own: Answer, case: Case) -> None:
    if case.differs:
        originals.differs(sagemaker.PLATFORM, case.differs)
        assert (original.status, original.body) != (own.status, own.body), "the difference is gone"
    elif original.status >= 400:
        # The toolkit gives its errors no content type.
        originals.differs(sagemaker.PLATFORM, "Tracebacks in answers")
        assert (own.status, own.body) == (original.status, original.body)
    else:
        assert own == original


@pytest.mark.parametrize(
    ("package", "cases"),
    [("sagemaker_ops", OPS), ("sagemaker_defaults", DEFAULTS), ("sagemaker_transform", TRANSFORM)],
    ids=["functions", "defaults", "transform_fn"],
)
def test_the_toolkit_and_panglot_answer_alike(package: str, cases: list[Case]) -> None:
    answers = sagemaker.theirs(package, cases)
    with serving(package) as server:
        wrong = []
        for case, original in zip(cases, answers, strict=True):
            own = ours(server, case)
            try:
                compare(original, own, case)
            except AssertionError:
                wrong.append(f"{case}\n  theirs {original}\n  ours   {own}")
        assert not wrong, "\n".join(wrong)
