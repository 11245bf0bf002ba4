"""Ask a server as users of eas_prediction do, with a token.

Prints the checks by name, each "passed" or what went wrong.
"""

import json
import sys
import traceback
from collections.abc import Callable

from eas_prediction import PredictClient, StringRequest
from eas_prediction.exception import PredictException

ADDRESS, TOKEN = sys.argv[1:3]


def client(token: str = TOKEN, service: str = "heart_predict") -> PredictClient:
    made = PredictClient(ADDRESS, service)
    made.set_token(token)
    made.set_retry_count(1)
    made.set_timeout(60000)
    made.init()
    return made


def ask(asked: PredictClient, text: str) -> str:
    return asked.predict(StringRequest(text)).response_data.decode()


def refusal(asked: PredictClient, text: str = "2 104") -> PredictException:
    try:
        ask(asked, text)
    except PredictException as error:
        return error
    raise AssertionError("nothing was raised")


def signed_requests_are_answered() -> None:
    assert ask(client(), "2 104") == "True"
    assert ask(client(service="another.name"), "2 104") == "True"


def a_token_as_it_is_is_taken_too() -> None:
    made = PredictClient(ADDRESS, "", custom_url=f"http://{ADDRESS}/api/predict/heart_predict/sub")
    made.set_token(TOKEN)
    made.init()
    assert ask(made, "2 104") == "True"


def statuses_of_the_processor_are_raised() -> None:
    error = refusal(client(), "2 105")
    assert (error.code, error.message) == (400, b"False"), vars(error)


def another_token_signs_nothing() -> None:
    assert refusal(client("wrong")).code == 401


def without_a_token_nothing_is_answered() -> None:
    assert refusal(client("")).code == 401


CHECKS: list[Callable[[], None]] = [
    signed_requests_are_answered, a_token_as_it_is_is_taken_too, statuses_of_the_processor_are_raised,
    another_token_signs_nothing, without_a_token_nothing_is_answered,
]  # fmt: skip


def outcome(check: Callable[[], None]) -> str:
    try:
        check()
    except Exception:
        return traceback.format_exc()
    return "passed"


print(json.dumps({check.__name__: outcome(check) for check in CHECKS}))
