"""The atlas in the worker: it answers with what it was told of the request."""

from __future__ import annotations

from typing import Any, Callable, Dict

from panglot_worker.bodies import codec
from panglot_worker.dialects.base import Answer, Dialect, Request, Stages


class Atlas(Dialect):
    streams = False

    def load(self, progress: Callable[[str], None]) -> Stages:
        return Stages(decode=self.decode, infer=lambda told: told, encode=self.encode)

    def describe(self) -> Dict[str, Any]:
        return {"entry": "answer", "stages": [], "summary": "", "example": {"kind": "json", "value": {}}}

    def decode(self, request: Request) -> Any:
        head = request.head
        return {
            "model": self.package.name,
            "method": head.method.decode(),
            "route": head.route.decode(),
            "path": head.path.decode(),
            "values": head.path_values,
            "headers": head.headers.decode(),
            "size": len(request.body),
        }

    def encode(self, output: Any, request: Request) -> Answer:
        return Answer("application/json", codec.encode(output, "", codec.Limits(), "null").body)


DIALECT = Atlas
