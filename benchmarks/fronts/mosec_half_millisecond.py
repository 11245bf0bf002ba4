"""mosec with the same work. Usage: mosec_half_millisecond.py --processes N --address HOST --port PORT

mosec reads its own flags from the same command line and ignores the ones it does not know.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import orjson
from mosec import Server, Worker


class HalfMillisecond(Worker):
    def deserialize(self, data: bytes) -> Any:
        return orjson.loads(data)

    def serialize(self, data: Any) -> bytes:
        return orjson.dumps(data)

    def forward(self, data: Any) -> Any:
        end = time.perf_counter() + 0.0005
        while time.perf_counter() < end:
            pass
        return data


def main() -> None:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--processes", type=int, default=1)
    options, _ = parser.parse_known_args()
    server = Server()
    server.append_worker(HalfMillisecond, num=options.processes, max_batch_size=1)
    server.run()


if __name__ == "__main__":
    main()
