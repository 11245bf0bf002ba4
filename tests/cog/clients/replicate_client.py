"""Call a server as users of Replicate's client do, with a token.

Prints the checks by name, each "passed" or what went wrong.
"""

import json
import sys
import traceback
from collections.abc import Callable

import replicate

OPS, WORDS, TOKEN = sys.argv[1:4]


def client(base: str) -> replicate.Client:
    return replicate.Client(api_token=TOKEN, base_url=base)


def a_prediction_is_created_and_waited_for() -> None:
    prediction = client(OPS).predictions.create(version="1", input={"n": 3})
    prediction.wait()
    assert prediction.status == "succeeded"
    assert prediction.output["text"].startswith("echo 3")
    assert "log line" in prediction.logs


def a_failed_prediction_says_why() -> None:
    prediction = client(OPS).predictions.create(version="1", input={"op": "raise"})
    prediction.wait()
    assert (prediction.status, prediction.error) == ("failed", "no")


def run_gives_the_output() -> None:
    assert client(OPS).run("me/ops", input={"n": 2})["text"].startswith("echo 2")


def a_stream_has_every_word() -> None:
    events = list(client(WORDS).stream("me/words", input={"prompt": "a b c", "pause": 0.2}))
    assert "".join(event.data for event in events if event.event.value == "output").split() == ["a", "b", "c"]


def a_prediction_is_cancelled() -> None:
    own = client(WORDS)
    prediction = own.predictions.create(version="1", input={"prompt": "a b c d e f", "pause": 0.5})
    own.predictions.cancel(prediction.id)
    prediction.reload()
    assert prediction.status == "canceled"


CHECKS: list[Callable[[], None]] = [
    a_prediction_is_created_and_waited_for,
    a_failed_prediction_says_why,
    run_gives_the_output,
    a_stream_has_every_word,
    a_prediction_is_cancelled,
]


def outcome(check: Callable[[], None]) -> str:
    try:
        check()
    except Exception:
        return traceback.format_exc()
    return "passed"


print(json.dumps({check.__name__: outcome(check) for check in CHECKS}))
