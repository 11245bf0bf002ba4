"""mosec's own server, which Panglot replaces."""

from __future__ import annotations

from typing import Any

INSTEAD = "Panglot is the server here: add workers with tiinfer.append_worker(...) and start `panglot tiinfer`"


class Server:
    """Can be imported, made and named in annotations; everything that would serve raises RuntimeError."""

    def append_worker(self, *_: Any, **__: Any) -> None:
        raise RuntimeError(INSTEAD)

    def register_runtime(self, *_: Any, **__: Any) -> None:
        raise RuntimeError(INSTEAD)

    def register_daemon(self, *_: Any, **__: Any) -> None:
        raise RuntimeError(INSTEAD)

    def run(self) -> None:
        raise RuntimeError(INSTEAD)
