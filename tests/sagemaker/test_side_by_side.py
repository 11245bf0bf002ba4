"""The toolkits of SageMaker's containers and Panglot on the same scripts and bodies: status, content type and body.

A case that differs names the row of docs/dialects/sagemaker.md that says why.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import httpx
import numpy as np
import pytest

from support import originals, sagemaker
from support.originals import Answer, Case
from support.server import PACKAGES, Server, serving

pytestmark = [pytest.mark.rest("installs the toolkits of SageMaker"), pytest.mark.timeout(400)]
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
SERVICE = [
    sent("hello new world", "text/plain"),
    sent("hello world", "text/plain", "text/csv"),
    sent('["hello"]'),
    sent("hello", "text/plain", "image/png"),
    sent("hello", "image/png"),
    sent("raise", "text/plain"),
    sent("{"),
]
ANY_OF_THEM = "Accept with `*/*` among others"
FLASKS = "Answers of the scikit-learn and XGBoost containers' own server"
UNTYPED = "Results without a type, in the scikit-learn and XGBoost containers"
MODEL_ALONE = """
class Sums:
    def predict(self, data):
        if data.size == 5:
            raise ValueError("five is too many")
        return data.sum(axis=-1)


def model_fn(model_dir):
    return Sums()
"""
SUMS = [
    sent("[[1, 2]]"),
    sent("[[1, 2], [3, 4.5]]", accept="text/csv"),
    sent("[1, 2]"),
    sent("[1, 2]", accept="text/csv"),
    sent("3"),
    *(sent(rows, "text/csv") for rows in ("1,2\n3,4", "1,2", "1\n2", '"1","2"', "")),
    *(sent(wrong, "text/csv") for wrong in ("a,b\n1,2", "1,2\n3", "# 1,2\n3,4", "1,\n")),
    sent("1,2\n3,4", "text/csv", "text/csv"),
    sent(npy([[1.5, 2]]), "application/x-npy"),
    sent(npy([[1, 2]]), "application/x-npy", "application/x-npy"),
    sent("[[1]]", ""),
    sent("[[1]]", JSON + "; charset=utf-8"),
    sent("[[1]]", "text/plain"),
    sent("[[1]]", accept="image/png"),
    sent("[[1]]", accept="image/png, text/csv"),
    sent("[[1]]", accept="application/json, text/plain, */*", differs=ANY_OF_THEM),
    *(sent(wrong) for wrong in ("{", "", b"\xff", '{"a": 1}', "[[1], [2, 3]]", '["x"]', "[1, 2, 3, 4, 5]")),
    sent("[NaN, 1]", differs="NaN in answers"),
    sent("1,2", "", ContentType="text/csv"),
    sent("1,2", ContentType="text/csv"),
    Case("GET", "/invocations", differs=FLASKS),
    Case("GET", "/ping", differs=FLASKS),
    Case("GET", "/nowhere", differs=FLASKS),
]
OLDER = [
    *(sent(op, "text/plain") for op in ("tuple", "table", "response", "raise")),
    *(sent(op, "text/plain", differs=UNTYPED) for op in ("text", "bytes", "dict", "none")),
    *(sent("x", kind) for kind in (JSON, "text/csv", "", "image/png", JSON + "; charset=utf-8")),
    sent(b"\xff", "text/csv"),
    *(sent("x", accept=accept) for accept in ("text/csv", "*/*", "a/b, c/d")),
]


def ours(server: Server, case: Case) -> Answer:
    with httpx.Client(headers={}) as client:
        request = client.build_request(
            case.method, server.url + case.path, content=case.content, headers=dict(case.headers)
        )
        if "Accept" not in case.headers:
            del request.headers["accept"]
        answer = client.send(request)
    kind = answer.headers.get("content-type")
    return Answer(answer.status_code, {"content-type": (kind,) if kind else ()}, answer.content)


def message(body: bytes) -> object:
    """What an error says, but for the traceback that it has beside, and for where objects lie in memory."""
    body = re.sub(rb" at 0x[0-9a-f]+", b"", body)
    try:
        told = json.loads(body)
    except ValueError:
        return body
    return {**told, "stack-trace": ""} if isinstance(told, dict) and "stack-trace" in told else told


def compare(original: Answer, own: Answer, case: Case) -> None:
    if case.differs:
        originals.differs(sagemaker.PLATFORM, case.differs)
        assert (original.status, original.headers, original.body) != (own.status, own.headers, own.body), "it is gone"
    elif original.status >= 400:
        # The toolkit gives its errors no content type.
        originals.differs(sagemaker.PLATFORM, "Tracebacks in answers")
        assert (own.status, message(own.body)) == (original.status, message(original.body))
    else:
        assert own == original


def side_by_side(
    kind: str, package: Path, cases: list[Case], stubs: Path, *flags: str, env: Mapping[str, str] | None = None
) -> None:
    answers = sagemaker.theirs(kind, package, cases, stubs)
    with serving(package, *flags, env=env) as server:
        wrong = []
        for case, original in zip(cases, answers, strict=True):
            own = ours(server, case)
            try:
                compare(original, own, case)
            except AssertionError:
                wrong.append(f"{case}\n  theirs {original}\n  ours   {own}")
        assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("package", "cases", "kind"),
    [
        ("sagemaker_ops", OPS, "toolkit"), ("sagemaker_defaults", DEFAULTS, "toolkit"),
        ("sagemaker_transform", TRANSFORM, "toolkit"),
        pytest.param("sagemaker_service", SERVICE, "service", marks=pytest.mark.document("sagemaker.38")),
    ],
    ids=["functions", "defaults", "transform_fn", "handler_service"],
)  # fmt: skip
def test_the_toolkit_and_panglot_answer_alike(package: str, cases: list[Case], kind: str, tmp_path: Path) -> None:
    side_by_side(kind, PACKAGES / package, cases, tmp_path)


@pytest.mark.document("sagemaker.23", "sagemaker.24")
def test_the_older_toolkit_and_panglot_answer_alike(tmp_path: Path) -> None:
    side_by_side("flask", PACKAGES / "sagemaker_older", OLDER, tmp_path, "--flavor", "sklearn")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "inference.py").write_text(MODEL_ALONE)
    side_by_side("flask", tmp_path, SUMS, tmp_path, "--flavor", "sklearn")


NET = [
    sent("[[1, 2]]"),
    sent("[[1.5, 2]]", accept="text/csv"),
    sent("1,2\n3,4", "text/csv", "text/csv"),
    sent("1,2", "text/csv"),
    sent(npy([[1.5, 2]], dtype="float32"), "application/x-npy"),
    sent(npy([[1.5, 2]]), "application/x-npy", "application/x-npy"),
    sent(npy([[1, 2]]), "application/x-npy"),
    sent("[[1]]", accept="image/png, text/csv"),
    sent("[[1]]", accept="image/png"),
    sent("[[1]]", "text/plain"),
    sent("[[1]]", ""),
    sent("[[1]]", JSON + "; charset=utf-8"),
    *(sent(wrong) for wrong in ("{", "", "[[1], [2, 3]]", '["x"]', '{"a": 1}')),
]
TOLD = """
import torch


class Net(torch.nn.Module):
    def forward(self, values):
        if values.numel() == 3:
            raise ValueError("three are too many")
        return {"sum": values.sum().item(), "grad": torch.is_grad_enabled(), "training": self.training}


def model_fn(model_dir):
    return Net()
"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.document("sagemaker.22")
def test_the_pytorch_container_and_panglot_answer_alike(tmp_path: Path) -> None:
    """A TorchScript model without a script, and a script that has the model alone."""
    torch = pytest.importorskip("torch")

    class Doubles(torch.nn.Module):
        def forward(self, values):
            return values * 2

    torch.jit.script(Doubles()).save(str(tmp_path / "model.pt"))
    side_by_side("pytorch", tmp_path, NET, tmp_path, "--flavor", "pytorch")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "inference.py").write_text(TOLD)
    side_by_side("pytorch", tmp_path, [*NET[:1], *NET[3:5], *NET[7:], sent("[1, 2, 3]")], tmp_path)


SENTENCES = [
    sent('{"inputs": "a", "parameters": {"top_k": 2}}'),
    sent('{"inputs": "a"}'),
    sent('{"text": "a"}'),
    sent('{"inputs": "a", "parameters": null, "more": 1}'),
    sent("inputs\na\nb\n", "text/csv"),
    sent("question,context\na,b\n", "text/csv"),
    sent("a,b\n1,2\n", "text/csv"),
    sent("", "text/csv"),
    sent('{"inputs": "a"}', accept="text/csv"),
    sent('{"inputs": "a"}', accept="*/*"),
    sent('{"inputs": "a"}', accept="application/x-npy"),
    sent('{"inputs": "a"}', accept="image/png"),
    sent('{"inputs": "a"}', accept="text/html"),
    sent('{"inputs": "a"}', accept="text/csv, application/json"),
    sent('{"inputs": "a"}', accept="application/json, text/plain, */*", differs=ANY_OF_THEM),
    sent(b"RIFF", "audio/wave"),
    sent(b"RIFF", "audio/wav", differs="Sounds for the Hugging Face container"),
    sent(b"RIFF", "audio/x-audio"),
    sent(b"no picture", "image/png"),
    sent('{"inputs": "raise"}'),
    sent('{"inputs": "a", "parameters": 7}'),
    *(sent(wrong) for wrong in ("[1]", "7", "{", "", b"\xff")),
    sent('{"inputs": "a"}', JSON + "; charset=utf-8"),
    sent('{"inputs": "a"}', ""),
    sent("x", "text/plain"),
]


@pytest.mark.document("sagemaker.28")
def test_the_hugging_face_container_and_panglot_answer_alike(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    image, picture = pytest.importorskip("PIL.Image"), BytesIO()
    image.new("L", (3, 2)).save(picture, "PNG")
    pictures = [sent(picture.getvalue(), kind) for kind in ("image/png", "image/x-image", "image/jpeg", "image/svg")]
    side_by_side("huggingface", PACKAGES / "sagemaker_sentences", [*SENTENCES, *pictures], tmp_path)
