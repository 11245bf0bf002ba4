"""`serve --record FILE`: a tap on every HTTP/1 connection of this server. Servers that do not record never load this.

The callbacks of a connection are wrapped when the connection is made, so requests cost nothing more in a server that
does not record. gRPC has a port of its own and is not recorded.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from panglot.recording.recorder import Recorder
from panglot.recording.sampling import SamplingRules
from panglot.recording.sink import PairSink, RecorderOptions
from panglot.recording.tap import ConnectionTap
from panglot.settings import Settings
from panglot.web.http1.connection import ConnectionCallbacks, HttpConnection, callbacks

log = logging.getLogger("panglot")
CLIENT_GONE = "the client disconnected"
NEUTRAL = (
    "/", "/metrics", "/docs", "/docs/*", "/openapi.json", "/status", "/status.json", "/live*", "/assets/*", "/pages/*",
    "/favicon.ico", "/v2/health/*", "/v2/models/*/ready", "/models/*/openapi.json", "/models/*/docs*",
)  # fmt: skip
"""GET requests to these paths are about the server, not for the script."""


class OwnRecording:
    """The recording of a server whose process writes the file."""

    def __init__(self, recorder: Recorder) -> None:
        self.sink = recorder

    async def close(self) -> None:
        """Write the pairs that are left, and log the outcome of the recording."""
        await asyncio.to_thread(self.sink.close)
        log.info("recorded %s", self.sink.summary())


def own_recording(settings: Settings, secrets: Iterable[bytes]) -> OwnRecording:
    """The recording that settings name. Raises StartError when its file cannot be created."""
    return OwnRecording(Recorder(options_of(settings, secrets)))


def options_of(settings: Settings, secrets: Iterable[bytes]) -> RecorderOptions:
    """The options of a recording by the settings."""
    return RecorderOptions(
        Path(settings.record),
        "panglot serve",
        SamplingRules(
            settings.record_every,
            only_failures=settings.record_failures,
            paths=settings.record_paths,
            not_got=NEUTRAL,
        ),
        settings.record_redact,
        settings.record_max_body,
        settings.record_memory,
        settings.record_rotate_size,
        settings.record_rotate_age,
        settings.record_retain,
        tuple(secret.decode("latin-1") for secret in secrets if secret),
    )


def recorded(connection: HttpConnection, recorder: PairSink) -> asyncio.BufferedProtocol:
    """The protocol to give to a transport, as `callbacks` makes it, with a tap in it."""
    seen = cast(ConnectionCallbacks, callbacks(connection))
    tap = ConnectionTap(recorder)
    reader = connection.reader

    def connection_made(transport: Any) -> None:
        seen.connection_made(_TappedTransport(transport, tap))

    def buffer_updated(count: int) -> None:
        # Before the reader sees the bytes: it may answer at once, and the answer belongs to the request.
        deque(tap.request(bytes(reader.reads_to[:count])), 0)
        seen.buffer_updated(count)

    def connection_lost(error: Exception | None) -> None:
        tap.closed(CLIENT_GONE)
        seen.connection_lost(error)

    wrapped = seen._replace(
        connection_made=connection_made, buffer_updated=buffer_updated, connection_lost=connection_lost
    )
    return cast(asyncio.BufferedProtocol, wrapped)


class _TappedTransport:
    """A transport that lets the tap see what is written."""

    def __init__(self, transport: asyncio.Transport, tap: ConnectionTap) -> None:
        self._transport = transport
        self._tap = tap
        self.get_write_buffer_size = transport.get_write_buffer_size
        self.get_extra_info = transport.get_extra_info

    def write(self, data: Any) -> None:
        # The client first: the tap only watches. A copy: the owner of a view may write to its memory again.
        self._transport.write(data)
        self._tap.answer(bytes(data))

    def writelines(self, pieces: Iterable[Any]) -> None:
        # A list: an iterator would be at its end after `writelines`.
        pieces = list(pieces)
        self._transport.writelines(pieces)
        for piece in pieces:
            self._tap.answer(bytes(piece))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
