"""Videos in the bodies of requests."""

from __future__ import annotations

import os
from typing import Any, Dict

from panglot_worker.video.decoder_process import VideoSource

SHOWN = "upload"
"""Their name in lists and logs."""


def uploaded(body: Any, settings: Dict[str, Any]) -> VideoSource:
    """The video that a client sent.

    The front stores it in a file; the body is the path of this file, and the front removes the file once the request
    is answered. A front on another machine sends the video itself.
    """
    if not settings.get("videos_in_bodies"):
        return VideoSource("file", os.open(bytes(body), os.O_RDONLY | os.O_CLOEXEC), SHOWN)
    file = os.memfd_create("panglot-upload")
    with os.fdopen(os.dup(file), "wb") as writing:
        writing.write(body)
    os.lseek(file, 0, os.SEEK_SET)
    return VideoSource("file", file, SHOWN)
