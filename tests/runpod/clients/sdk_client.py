"""Call a server as users of RunPod's SDK do, with a token.

Prints the checks by name, each "passed" or what went wrong.
"""

import json
import sys
import time
import traceback
from collections.abc import Callable

import runpod

OPS, WORDS, TOKEN = sys.argv[1:4]


def endpoint(base: str, token: str = TOKEN) -> runpod.Endpoint:
    runpod.endpoint_url_base = base
    runpod.api_key = token
    return runpod.Endpoint("any-endpoint")


def run_sync_gives_the_output() -> None:
    assert endpoint(OPS).run_sync({"input": {"op": "text"}}) == "x"
    assert endpoint(OPS).run_sync({"op": "echo"}) == {"got": {"op": "echo"}}


def run_sync_polls_a_job_that_lasts() -> None:
    assert endpoint(OPS).run_sync({"op": "sleep", "seconds": 2}, timeout=30) == "slept"


def run_gives_a_job() -> None:
    job = endpoint(OPS).run({"input": {"op": "text"}})
    assert job.output(timeout=30) == "x"
    assert job.status() == "COMPLETED"


def a_failed_job_has_no_output() -> None:
    job = endpoint(OPS).run({"input": {"op": "raise"}})
    assert job.output(timeout=30) is None
    assert job.status() == "FAILED"


def a_job_is_cancelled() -> None:
    job = endpoint(OPS).run({"input": {"op": "sleep", "seconds": 5}})
    job.cancel()
    assert job.status() == "CANCELLED"


def a_stream_has_every_part_once() -> None:
    job = endpoint(WORDS).run({"input": {"prompt": "a b c d", "pause": 0.4}})
    assert [part["word"] for part in job.stream()] == ["a", "b", "c", "d"]


def health_and_purge() -> None:
    own = endpoint(OPS)
    time.sleep(0.1)
    assert own.health()["workers"].keys() >= {"idle", "running"}
    assert own.purge_queue()["status"] == "completed"


CHECKS: list[Callable[[], None]] = [
    run_sync_gives_the_output,
    run_sync_polls_a_job_that_lasts,
    run_gives_a_job,
    a_failed_job_has_no_output,
    a_job_is_cancelled,
    a_stream_has_every_part_once,
    health_and_purge,
]


def outcome(check: Callable[[], None]) -> str:
    try:
        check()
    except Exception:
        return traceback.format_exc()
    return "passed"


print(json.dumps({check.__name__: outcome(check) for check in CHECKS}))
