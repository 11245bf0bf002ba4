"""BentoML: python bentoml_echo.py PORT"""

import os
import sys

import bentoml


@bentoml.service(workers=1, metrics={"enabled": False})
class Echo:
    @bentoml.api(batchable=True, max_batch_size=32)
    def predict(self, items: list[list[float]]) -> list[list[float]]:
        return items


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    command = [
        sys.executable,
        "-m",
        "bentoml",
        "serve",
        "bentoml_echo:Echo",
        "--port",
        sys.argv[1],
        "--host",
        "127.0.0.1",
    ]
    os.chdir(here)
    os.execv(sys.executable, [*command, "--quiet"])
