"""The file of keys: what it may say, and how each mistake is reported."""

from __future__ import annotations

import base64
import dataclasses
import math
import random
import time
import tomllib
from pathlib import Path

import pytest

from panglot.errors import StartError
from panglot.web.access import key_file
from panglot.web.access.keys import MOST_SHOWN, Keys, Wanted
from panglot.web.access.remembered_key import RememberedKey
from panglot.web.access.tokens import Access
from panglot.web.contract import ADMIN, INFER, METRICS
from support.steps import steps_of

DIGEST = 'secret = "sha256:' + "0" * 64 + '"'
WHOLE = f"""
[[key]]
name = "team-a"
{DIGEST}
may = ["infer", "metrics"]
models = ["resnet"]
routes = ["/predict", "/v2/*"]
rate = 2.5
burst = 5
at_once = 3
expires = 2030-01-31T00:00:00Z
"""


def entry(*lines: str, name: str = "a") -> str:
    return key_file.written(name, "pgk-x", lines)


def test_a_whole_entry_is_understood() -> None:
    (key,) = key_file.parse(WHOLE)
    assert (key.name, key.digest, key.may) == ("team-a", bytes(32), {"infer", "metrics"})
    assert (key.rate, key.burst, key.at_once) == (2.5, 5, 3)
    assert key.reaches_model("resnet")
    assert not key.reaches_model("bert")
    assert [key.reaches_route(path) for path in ("/predict", "/v2/models/x/infer", "/predict/x")] == [True, True, False]
    assert key_file.parse("") == []


MISTAKES = {
    "no TOML": ("[[key]\n", "no TOML"),
    "another table": ("[keys]\n", "begin each key with"),
    "no list": ("key = 7\n", "begin each key with"),
    "no name": (f"[[key]]\n{DIGEST}\n", "no name"),
    "no secret": ('[[key]]\nname = "a"\n', "no secret"),
    "a bad name": (entry(name="a b"), "a name is"),
    "a secret itself": (f'[[key]]\nname = "a"\nsecret = "{key_file.new_secret()}"\n', "the secret itself"),
    "a misspelt word": (entry('model = ["x"]'), "did you mean models"),
    "an unknown right": (entry('may = ["metric"]'), "did you mean metrics"),
    "a text for a list": (entry('models = "x"'), "list of texts"),
    "no path": (entry('routes = ["predict"]'), "no path"),
    "a rate of zero": (entry("rate = 0"), "above 0"),
    "an infinite rate": (entry("rate = inf"), "above 0"),
    "no number": (entry("rate = nan"), "above 0"),
    "true for a number": (entry("at_once = true"), "above 0"),
    "half a request": (entry("at_once = 1.5"), "whole number"),
    "a burst alone": (entry("burst = 3"), "without a rate"),
    "a moment without a zone": (entry("expires = 2030-01-31T00:00:00"), "time zone"),
    "a moment in quotes": (entry('expires = "2030-01-31T00:00:00Z"'), "without quotes"),
    "models without infer": (entry('may = ["metrics"]', 'models = ["x"]'), "for nothing"),
    "one name twice": (entry() + key_file.written("a", "pgk-y"), "two keys"),
    "one secret twice": (entry() + entry(name="b"), "the secret of key 'a'"),
}


@pytest.mark.parametrize(("text", "words"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_named_with_its_line(text: str, words: str) -> None:
    with pytest.raises(StartError) as caught:
        key_file.parse("\n" + text, "keys.toml")
    assert words in caught.value.sentence()
    assert caught.value.sentence().startswith("keys.toml")
    if text.startswith("[[key]]"):
        assert caught.value.line > 1


def test_no_file_however_broken_raises_anything_else(tmp_path: Path) -> None:
    """Bytes of a good file are changed, cut and doubled: it is understood, or refused in a sentence."""
    chance, good, file = random.Random(7), WHOLE.encode(), tmp_path / "keys.toml"
    refused = 0
    for _ in range(3000):
        raw = bytearray(good)
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(raw))
            raw[at : at + chance.randint(0, 9)] = chance.choice(
                (bytes([chance.randrange(256)]), b"[", b'"', b"\n", b"= 9e999", b"[[key]]\n", good[at : at + 40])
            )
        file.write_bytes(raw)
        try:
            key_file.read(str(file))
        except StartError:
            refused += 1
    assert refused > 1000
    file.write_bytes(b"key = " + b"[" * 100_000)
    with pytest.raises(StartError):
        key_file.read(str(file))
    with pytest.raises(StartError, match="cannot be read"):
        key_file.read(str(tmp_path))


def test_what_panglot_key_new_writes_is_what_a_server_reads() -> None:
    secret = key_file.new_secret()
    (key,) = key_file.parse(key_file.written("a", secret, ["rate = 3"]))
    assert tomllib.loads(key_file.written("a", secret))["key"][0]["secret"] != secret
    assert key.digest == key_file.digest_of(secret.encode())
    assert key_file.SECRET.fullmatch(secret.encode())


def test_ten_thousand_keys_are_found_in_as_many_steps_as_ten() -> None:
    """And a secret that is nearly right takes as many steps to refuse as one that is nothing like it."""

    def made(count: int) -> tuple[Keys, bytes]:
        secrets = [key_file.new_secret() for _ in range(count)]
        keys = [key_file.Key(f"k{at}", key_file.digest_of(secret.encode())) for at, secret in enumerate(secrets)]
        return Keys(keys), secrets[-1].encode()

    few, of_few = made(10)
    many, of_many = made(10_000)
    assert many.find(of_many) is not None
    assert steps_of(lambda: many.find(of_many)) == steps_of(lambda: few.find(of_few)) > 0
    near, far = of_many[:-1] + b"~", b"~" + of_many[1:]
    assert many.find(near) is many.find(far) is None
    assert steps_of(lambda: many.find(near)) == steps_of(lambda: many.find(far))
    assert many.metrics().count("panglot_key_open_requests{") == MOST_SHOWN + 1
    assert len(many.shown()) == MOST_SHOWN


def test_a_connection_remembers_its_key_until_the_file_of_keys_changes() -> None:
    keys = Keys(key_file.parse(entry()))
    access = Access(b"", frozenset(), keys=keys)
    remembered, bearer = RememberedKey(access), b"Bearer pgk-x"
    holder = remembered.holder(INFER, bearer, (), ())
    assert holder is not None
    # No digest is looked for any more: that of the key is gone from where it would be found.
    keys._by_digest.clear()
    assert remembered.holder(INFER, bearer, (), ()) is holder
    assert remembered.holder(INFER, b"Bearer pgk-y", (), ()) is None
    keys.replace(key_file.parse(entry()))
    assert remembered.holder(INFER, bearer, (), ()) is holder
    # Basic is for pages; a key that was remembered there opens nothing else with it.
    basic = b"Basic " + base64.b64encode(b":pgk-x")
    assert remembered.holder(ADMIN, basic, (), ()) is holder
    assert remembered.holder(INFER, basic, (), ()) is None
    keys.replace([])
    assert remembered.holder(ADMIN, basic, (), ()) is None


def test_a_changed_file_forgives_no_rate_and_revokes_at_once() -> None:
    keys = Keys(key_file.parse(entry("rate = 0.001", "burst = 2")))
    holder = keys.find(b"pgk-x")
    assert holder is not None
    for _ in range(2):
        assert holder.refusal(Wanted(INFER, "/predict")) is None
        holder.take()
    fault = holder.refusal(Wanted(INFER, "/predict"))
    assert fault is not None
    assert (fault.status, fault.code) == (429, "rate_limited")
    assert fault.retry_after > 900
    assert keys.replace(key_file.parse(entry("rate = 0.001", "burst = 3", 'may = ["infer"]')))[1:] == (0, 1, 0)
    assert keys.find(b"pgk-x") is holder
    assert holder.refusal(Wanted(INFER, "/predict")) is not None
    forbidden = holder.refusal(Wanted(ADMIN, "/status"))
    assert forbidden is not None
    assert forbidden.status == 403
    assert holder.limits()[b"ratelimit-policy"] == b'"rate";q=3;w=3000'
    former = holder.key
    assert former is not None
    assert keys.replace([])[1:] == (0, 0, 1)
    assert keys.find(b"pgk-x") is None
    assert not holder.readmit(former, time.monotonic())
    gone = holder.refusal(Wanted(METRICS, "/metrics"))
    assert gone is not None
    assert gone.status == 401


RATE, AT_ONCE = b'"rate";r=%(left)d;t=%(seconds)d', b'"at-once";r=%(further)d'


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        (("rate = 2", "burst = 8"), RATE),
        (("at_once = 3",), AT_ONCE),
        (("rate = 2", "burst = 8", "at_once = 3"), RATE + b", " + AT_ONCE),
    ],
)
def test_the_lines_about_limits_tell_what_is_left_however_often_they_were_told(
    limits: tuple[str, ...], told: bytes
) -> None:
    holder = Keys(key_file.parse(entry(*limits))).find(b"pgk-x")
    assert holder is not None
    assert holder.key is not None
    states = [(left, count) for left in (8.0, 7.5, 7.0, 0.5, 0.0, -3.0) for count in range(5)]
    for left, count in (*states, *reversed(states)):
        rest = max(left, 0)
        figures = {b"left": int(rest), b"seconds": math.ceil((8 - rest) / 2), b"further": max(3 - count, 0)}
        lines = holder.lines_of(holder.key, left, count).removeprefix(holder.policy)
        assert lines == b"ratelimit: %b\r\n" % (told % figures)
    # A changed key has other lines at once.
    holder.change(dataclasses.replace(holder.key, rate=1.0, burst=9))
    assert b'"rate";q=9;w=9' in holder.limit_lines()
