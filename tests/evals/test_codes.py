"""What a script returns and what a client sees: the platform's rules for codes, messages, shapes and results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.evals import GOOD, ask, group, package, result, returning, single
from support.server import Server, serving, wait_until


def whole(server: Server, code: int, message: Any, rets: str = "list") -> Any:
    return ask(server, single(params={"case": "whole", "code": code, "message": message, "rets": rets}))


def ret(server: Server, **values: Any) -> Any:
    return ask(server, single(params={"case": "rets", "ret": values}))


# 2.4, stage 1: the message decides


@pytest.mark.parametrize("message", ["", None])
@pytest.mark.parametrize("code", [0, 406, 599])
def test_without_a_message_the_outer_code_is_ignored(rows: Server, code: int, message: Any) -> None:
    answer = whole(rows, code, message, "rets")
    assert (answer.status_code, answer.json()["code"]) == (200, 0)


@pytest.mark.document("evals.30")
def test_a_message_discards_the_results(rows: Server) -> None:
    answer = whole(rows, 406, "no good", "rets")
    assert (answer.status_code, answer.json()) == (406, {"error": "no good"})


def test_a_message_with_code_0_is_a_success(rows: Server) -> None:
    """The original closed the connection without an answer."""
    assert whole(rows, 0, "Success", "rets").status_code == 200
    assert whole(rows, 0, "Success", "list").status_code == 599


@pytest.mark.document("evals.31")
def test_no_results_at_all(rows: Server) -> None:
    """`return None, 521, "msg"` is what the document shows: code and message are the answer."""
    answer = whole(rows, 521, "msg", "none")
    assert (answer.status_code, answer.json()) == (521, {"error": "msg"})
    answer = whole(rows, 400, "", "none")
    assert (answer.status_code, answer.json()) == (400, {"error": "the script says no more than this code"})
    answer = whole(rows, 0, "", "none")
    assert (answer.status_code, answer.json()) == (599, {"error": "argument 2 to map() must support iteration"})


def test_an_empty_dict_is_an_empty_list(rows: Server) -> None:
    assert whole(rows, 400, "with a message", "dict").status_code == 400
    assert whole(rows, 0, "", "dict").status_code == 599


SHAPES = ["two", "nothing", "four", "text"]


@pytest.mark.parametrize("shape", SHAPES)
def test_wrong_shapes(rows: Server, shape: str) -> None:
    answer = ask(rows, single(params={"case": "shape", "shape": shape}))
    assert answer.status_code == 599
    assert answer.json()["error"]


RAISED = {"base": "base", "batch": "eval request out of batch_size 4", "value": "café"}


@pytest.mark.document("evals.33")
@pytest.mark.parametrize("error", RAISED)
def test_exceptions_are_599_with_their_text(rows: Server, error: str) -> None:
    """Also those that carry a code of their own: it is not looked at."""
    answer = ask(rows, single(params={"case": "raise", "error": error}))
    assert (answer.status_code, answer.json()) == (599, {"error": RAISED[error]})


@pytest.mark.document("evals.34")
def test_a_traceback_is_told_to_the_log_alone(rows: Server) -> None:
    before = len(rows.lines)
    ask(rows, single(params={"case": "raise", "error": "value"}), headers={"x-reqid": "to-be-found"})
    rows.wait_log("to-be-found: ValueError: café", after=before)
    rows.wait_log(r"eval.py.*line \d+, in net_inference", after=before)


@pytest.mark.parametrize(
    "values",
    [
        {"code": None, "message": ""},
        {"code": "400", "message": ""},
        {"code": 1.5, "message": ""},
        {"code": True, "message": ""},
        {"code": 0, "message": None},
        {"code": 0, "message": 7},
        {"code": 0, "message": "", "body": 7},
    ],
)
def test_items_of_wrong_types(rows: Server, values: dict[str, Any]) -> None:
    assert ret(rows, **values).status_code == 599


def test_items_may_leave_things_out(rows: Server) -> None:
    assert ret(rows).json() == {"code": 0, "message": "", "result": {}}


RESULTS = {
    "float32": None,
    "array": None,
    "latin": None,
    "nan": None,
    "infinity": None,
    "object": None,
    "float64": 1.5,
    "int64": 3,
    "bytes": "café",
    "text": '{"double": "encoded"}',
    "html": "<b>&</b>",
    "large": 2**53 + 1,
}


@pytest.mark.parametrize("kind", RESULTS)
def test_results(rows: Server, kind: str) -> None:
    answer = ask(rows, single(params={"case": "result", "result": kind}))
    if RESULTS[kind] is None:
        assert answer.status_code == 599
    else:
        assert answer.json()["result"] == RESULTS[kind]


def test_settings_for_numbers() -> None:
    with serving("evals_rows", env={"PANGLOT_STRICT_RESULTS": "false", "PANGLOT_NAN": "null"}) as server:
        assert result(server, single(params={"case": "result", "result": "float32"})) == 1.5
        assert result(server, single(params={"case": "result", "result": "array"})) == [0, 0, 0]
        answer = ask(server, single(params={"case": "result", "result": "infinity"}))
        assert answer.json()["result"] == [1, None]
        assert "nan" in answer.headers["x-panglot-warning"]


def test_a_large_result(tmp_path: Path) -> None:
    """The original's buffer of 4 MiB overran; here the server's limit on answers counts."""
    script = returning(GOOD % "'x' * int(req['data']['body'])")
    with serving(package(tmp_path, script), "--max-output", "6MiB") as server:
        assert len(result(server, single(b"5000000"))) == 5_000_000
        assert ask(server, single(b"7000000")).status_code == 599


# Stages 3 and 4: codes and statuses

CODES = {
    0: 200, 200: 200, 204: 200, 299: 200, 400: 400, 404: 404, 406: 406, 415: 415, 424: 424, 499: 499, 500: 500,
    521: 521, 570: 570, 572: 572, 599: 599, 1: 500, -1: 500, 100: 500, 300: 500, 302: 500, 600: 500, 2**40: 500,
}  # fmt: skip


@pytest.mark.document("evals.32", "evals.35", "evals.36", "evals.37")
@pytest.mark.parametrize("code", CODES)
def test_the_code_of_a_result(rows: Server, code: int) -> None:
    answer = ret(rows, code=code, message="why", result={"a": 1})
    assert answer.status_code == CODES[code]
    if answer.status_code == 200:
        assert answer.json() == {"code": code, "message": "why", "result": {"a": 1}}
    else:
        assert answer.json() == {"error": "why"}
    assert ("retry-after" in answer.headers) == (570 <= code <= 579)


@pytest.mark.document("evals.30")
@pytest.mark.parametrize("code", CODES)
def test_the_code_of_a_whole_call(rows: Server, code: int) -> None:
    answer = whole(rows, code, "why", "rets")
    assert answer.status_code == (200 if code in (0, 200) else 500 if CODES[code] == 200 else CODES[code])
    assert ("retry-after" in answer.headers) == (570 <= code <= 579)


def test_codes_inside_groups_and_batches(rows: Server) -> None:
    params = {"case": "rets", "ret": {"code": 1, "message": "odd"}}
    assert ask(rows, group(b"x", params=params)).json()["code"] == 500
    assert ask(rows, [single(params=params)], "/v1/batch").json()[0]["code"] == 500


def test_an_error_wins_over_a_body(rows: Server) -> None:
    answer = ask(rows, single(params={"case": "body", "more": {"code": 400, "message": "no feature"}}))
    assert (answer.status_code, answer.json()) == (400, {"error": "no feature"})


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    script = returning("[dict(req['params']) for req in reqs], 0, ''")
    folder = package(tmp_path_factory.mktemp("strict"), script, panglot__toml="[evals]\nplatform_codes = true\n")
    with serving(folder) as server:
        yield server


PLATFORM = {0: 200, 200: 200, 204: 500, 400: 400, 406: 500, 415: 500, 424: 424, 500: 500, 522: 500, 570: 500, 599: 599}


@pytest.mark.parametrize("code", PLATFORM)
def test_the_original_knew_six_codes(strict: Server, code: int) -> None:
    answer = ask(strict, single(params={"code": code, "message": "why"}))
    assert answer.status_code == PLATFORM[code]
    inside = ask(strict, [single(params={"code": code, "message": "why"})], "/v1/batch").json()[0]["code"]
    assert inside == (code if code in (0, 200, 400, 424, 599) else 500)


def test_items_are_counted_by_code(rows: Server) -> None:
    before = {code: rows.metric("panglot_item_codes_total", code=str(code)) for code in (0, 424, 571)}
    ret(rows, code=571, message="later")
    params = [{"case": "rets", "ret": {"code": code, "message": ""}} for code in (0, 424, 424)]
    ask(rows, [single(params=value) for value in params], "/v1/batch")
    for code, more in ((0, 1), (424, 2), (571, 1)):
        wait_until(
            lambda code=code, more=more: rows.metric("panglot_item_codes_total", code=str(code)) == before[code] + more
        )


def test_system_exit_costs_one_request(rows: Server) -> None:
    """And its worker, which is replaced; the last test here, since it does that."""
    answer = ask(rows, single(params={"case": "exit"}))
    assert (answer.status_code, answer.json()) == (599, {"error": "2"})
    assert ask(rows, single()).status_code == 200
