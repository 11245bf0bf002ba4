"""Videos in the bodies of requests."""

from __future__ import annotations

import os
from typing import Any, Dict

from panglot_worker.line.wire import Head
from panglot_worker.video.decoder_process import VideoSource

SHOWN = "upload"
"""Their name in lists and logs."""


def is_in_body(head: Head, settings: Dict[str, Any]) -> bool:
    """Whether the body is the video itself: a job has stored it, or the front is on another machine."""
    return bool(head.job or settings.get("videos_in_bodies"))


def uploaded(body: Any, in_body: bool) -> VideoSource:
    """The video that a client sent.

    If it is not in the body, the front has stored it in a file, and removes the file once the request is answered; then
    the body is the path of this file.
    """
    if not in_body:
        return VideoSource("file", os.open(bytes(body), os.O_RDONLY | os.O_CLOEXEC), SHOWN)
    file = os.memfd_create("panglot-upload")
    with os.fdopen(os.dup(file), "wb") as writing:
        writing.write(body)
    os.lseek(file, 0, os.SEEK_SET)
    return VideoSource("file", file, SHOWN)
