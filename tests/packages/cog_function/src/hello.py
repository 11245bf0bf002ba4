import os
from typing import Any


def hello(text: str, times: int = 1) -> Any:
    return {"greeting": " ".join([os.environ["GREETING"], text] * times), "set": {1}, "tuple": (1, 2)}
