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


def an_open_file_is_an_input() -> None:
    with open(__file__, "rb") as file:
        said = client(OPS).run("me/ops", input={"op": "image", "image": file})["text"]
    name, _, beginning = said.partition(" ")
    assert name.endswith(".py")
    assert beginning.startswith('"""Call a server')


def a_prediction_that_has_ended_stays_as_it_is_when_it_is_cancelled() -> None:
    own = client(OPS)
    prediction = own.predictions.create(version="1", input={"n": 3})
    prediction.wait()
    cancelled = own.predictions.cancel(prediction.id)
    assert (cancelled.status, cancelled.output) == ("succeeded", prediction.output)


def a_deployment_and_the_list_of_versions_are_those_of_the_model() -> None:
    prediction = client(OPS).deployments.predictions.create("me/ops", input={"n": 2})
    prediction.wait()
    assert prediction.output["text"].startswith("echo 2")
    (version,) = client(OPS).models.get("me/ops").versions.list().results
    assert version.openapi_schema["components"]["schemas"]["Input"]


def a_refusal_says_why() -> None:
    said = "nothing"
    try:
        client(OPS).predictions.create(version="1", input={}, webhook="https://example.com/told")
    except replicate.exceptions.ReplicateError as error:
        said = str(error.detail)
    assert "--webhook-allow" in said


CHECKS: list[Callable[[], None]] = [
    a_prediction_is_created_and_waited_for,
    a_failed_prediction_says_why,
    run_gives_the_output,
    a_stream_has_every_word,
    a_prediction_is_cancelled,
    an_open_file_is_an_input,
    a_prediction_that_has_ended_stays_as_it_is_when_it_is_cancelled,
    a_deployment_and_the_list_of_versions_are_those_of_the_model,
    a_refusal_says_why,
]


def outcome(check: Callable[[], None]) -> str:
    try:
        check()
    except Exception:
        return traceback.format_exc()
    return "passed"


print(json.dumps({check.__name__: outcome(check) for check in CHECKS}))
