"""Ask a server as users of huggingface_hub do: InferenceClient with the server's address, and a token.

Prints the checks by name, each "passed" or what went wrong.
"""

import io
import json
import sys
import traceback
from collections.abc import Callable

from huggingface_hub import InferenceClient
from huggingface_hub.errors import HfHubHTTPError
from PIL import Image

ADDRESS, TOKEN = sys.argv[1:3]
CLIENT = InferenceClient(model=ADDRESS, token=TOKEN)


def picture() -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (8, 4)).save(out, "PNG")
    return out.getvalue()


def text_classification() -> None:
    (best,) = CLIENT.text_classification("I like you", top_k=1)
    assert (best.label, best.score) == ("POSITIVE", 0.5)


def feature_extraction() -> None:
    assert CLIENT.feature_extraction("text", normalize=True).tolist() == [[1.0, 2.0, 3.0]]


def text_to_image() -> None:
    assert CLIENT.text_to_image("a cat", width=16).size == (16, 8)


def image_classification_of_bytes() -> None:
    assert CLIENT.image_classification(picture())[0].label == "8x4"


def image_to_image_with_parameters() -> None:
    assert CLIENT.image_to_image(picture(), prompt="smaller").size == (4, 2)


def speech_of_bytes() -> None:
    assert CLIENT.automatic_speech_recognition(b"fLaC" + bytes(16)).text == "20 bytes"


def refusal(client: InferenceClient, text: str) -> HfHubHTTPError:
    try:
        client.text_classification(text)
    except HfHubHTTPError as error:
        return error
    raise AssertionError("nothing was raised")


def failure_is_shown() -> None:
    error = refusal(CLIENT, "fail")
    assert error.response.status_code == 400, error
    assert "no such text" in str(error), error


def wrong_token_is_refused() -> None:
    error = refusal(InferenceClient(model=ADDRESS, token="hf_wrong"), "x")
    assert error.response.status_code == 401, error


CHECKS: list[Callable[[], None]] = [
    text_classification, feature_extraction, text_to_image, image_classification_of_bytes,
    image_to_image_with_parameters, speech_of_bytes, failure_is_shown, wrong_token_is_refused,
]  # fmt: skip


def outcome(check: Callable[[], None]) -> str:
    try:
        check()
    except Exception:
        return traceback.format_exc()
    return "passed"


print(json.dumps({check.__name__: outcome(check) for check in CHECKS}))
