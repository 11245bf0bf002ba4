"""Top-level fields of a JSON body that is too large to be parsed whole."""

from __future__ import annotations

import json

from panglot.web.json_fields import LONGEST, SMALL, TOO_LONG, read_fields

NAMES = ("input", "policy", "webhook")


def test_a_value_that_is_too_long_is_known_to_be_there_and_hides_nothing_behind_it() -> None:
    body = json.dumps({"input": "x" * (LONGEST + SMALL), "policy": {"ttl": 1}}).encode()
    assert read_fields(body, NAMES, 64) == {"input": TOO_LONG, "policy": {"ttl": 1}}


def test_a_small_body_has_all_values() -> None:
    assert read_fields(b'{"input": [1], "other": 2}', NAMES, 64) == {"input": [1]}
