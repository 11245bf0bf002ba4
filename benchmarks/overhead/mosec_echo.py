"""mosec as the peer. Usage: mosec_echo.py --batch N [--orjson | --raw | --length] [--processes N] --address H --port P

mosec reads its own flags from the same command line and ignores the ones it does not know.
Bodies are JSON by mosec's own default codec, which is json with indented answers; with --orjson by
orjson, as at the floor; with --raw they pass as bytes, and with --length only their lengths come back.
"""

from __future__ import annotations

import argparse
from typing import Any

import orjson
from mosec import Server, Worker


class Echo(Worker):
    def forward(self, data: Any) -> Any:
        return data


class OrjsonEcho(Echo):
    def deserialize(self, data: bytes) -> Any:
        return orjson.loads(data)

    def serialize(self, data: Any) -> bytes:
        return orjson.dumps(data)


class RawEcho(Echo):
    resp_mime_type = "application/octet-stream"

    def deserialize(self, data: bytes) -> bytes:
        return data

    def serialize(self, data: bytes) -> bytes:
        return data


class Length(RawEcho):
    def serialize(self, data: bytes) -> bytes:
        return b"%d" % len(data)


def main() -> None:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1)
    codec = parser.add_mutually_exclusive_group()
    codec.add_argument("--orjson", dest="worker", action="store_const", const=OrjsonEcho, default=Echo)
    codec.add_argument("--raw", dest="worker", action="store_const", const=RawEcho)
    codec.add_argument("--length", dest="worker", action="store_const", const=Length)
    options, _ = parser.parse_known_args()
    server = Server()
    server.append_worker(options.worker, num=options.processes, max_batch_size=options.batch)
    server.run()


if __name__ == "__main__":
    main()
