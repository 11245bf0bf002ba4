"""Run in a network of its own: asks every user of the rules on addresses about a corpus, and prints its answers.

The words are `refused`, by a rule, and `asked`: a connection was tried, which leads nowhere here.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys

from panglot.fetching.fetcher import REFUSED, Fetcher, FetchLimits
from panglot_worker.life.netguard import Guard
from panglot_worker.net.hosts import AddressRefused, Allowed
from panglot_worker.video.guarded import Unreachable, opened
from panglot_worker.video.relay import Relay


def fetcher(url: str, *listed: str) -> str:
    """The front, for addresses in requests."""
    fetched = asyncio.run(Fetcher(FetchLimits(), Allowed(listed)).fetch(url))
    return "refused" if fetched.outcome == REFUSED else "asked"


def video(url: str, *listed: str) -> str:
    """The decoder, for videos at addresses."""
    try:
        opened(url, listed, 1 << 20, 5.0)
    except AddressRefused:
        return "refused"
    except (OSError, Unreachable):
        pass
    return "asked"


def camera(url: str, *listed: str) -> str:
    """The decoder, for live streams."""
    try:
        Relay(url, listed, 5.0)
    except AddressRefused:
        return "refused"
    except OSError:
        pass
    return "asked"


class Script:
    """A script in a worker, whose sockets are guarded."""

    def __init__(self) -> None:
        self.refusals = 0
        self.guard = Guard((), self._count)
        self.guard.install()

    def _count(self, address: str, port: int) -> None:
        self.refusals += 1

    def __call__(self, host: str, port: int, *listed: str) -> str:
        before = self.refusals
        self.guard.allowed, self.guard.active = Allowed(listed), True
        try:
            with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as sock:
                sock.settimeout(5)
                sock.connect((host, port))
        except OSError:
            pass
        finally:
            self.guard.active = False
        return "refused" if self.refusals > before else "asked"


def main() -> None:
    given = json.load(sys.stdin)
    script = Script()
    print(
        json.dumps(
            {
                "fetcher": [fetcher(*words) for words in given["urls"]],
                "video": [video(*words) for words in given["urls"]],
                "camera": [camera(*words) for words in given["streams"]],
                "script": [script(*words) for words in given["sockets"]],
            }
        )
    )


if __name__ == "__main__":
    main()
