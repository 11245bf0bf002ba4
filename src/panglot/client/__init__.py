"""A client in three lines, for programs that call a server of scripts.

    from panglot import Client

    with Client("http://127.0.0.1:8080") as client:
        print(client.predict(image=Path("a.png"), threshold=0.4))

`AsyncClient` is the same with `await`. `common.py` says which requests a client sends, and `attempts.py` which it
sends again; `requests.py` makes requests from inputs; `answers.py` reads answers; `jobs.py` follows jobs. The two
clients only send and sleep.
"""

from __future__ import annotations

from panglot.client.answers import CallAnswer
from panglot.client.asynchronous import AsyncClient
from panglot.client.errors import CallError
from panglot.client.jobs import AsyncJobHandle, JobEvent, JobHandle
from panglot.client.synchronous import Client

__all__ = ["AsyncClient", "AsyncJobHandle", "CallAnswer", "CallError", "Client", "JobEvent", "JobHandle"]
