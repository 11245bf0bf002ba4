"""From the text of a client to a source that a decoder can open: a file, a camera, or an address of http or rtsp, with
or without TLS."""

from __future__ import annotations

import re

from panglot_worker.net.hosts import AddressRefused, Allowed
from panglot_worker.net.urls import HTTP, RTSP, parse
from panglot_worker.video.decoder_process import VideoSource
from panglot_worker.video.limits import SourceRules
from panglot_worker.video.named_files import open_file

SCHEMES = (*HTTP, *RTSP)
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*[:,]")
CAMERA = re.compile(r"/dev/video[0-9]+")


def find(text: str, rules: SourceRules) -> VideoSource:
    """The source that a text names. An address is checked, without any connection; a file is opened.

    Raises AddressRefused.
    """
    if CAMERA.fullmatch(text):
        if not rules.cameras:
            raise AddressRefused("cameras of the server may be named only where it was started with --cameras")
        return VideoSource("camera", text, text, text)
    if is_address(text):
        scheme = parse(text, Allowed(rules.url_allow), SCHEMES).scheme
        return VideoSource("rtsp" if scheme in RTSP else "http", text, shown(text), text)
    return VideoSource("file", open_file(text, rules), text, text)


def is_address(text: str) -> bool:
    """Whether a text is meant as an address, and not as a path: `concat:a` is, and so is `subfile,,`."""
    return ADDRESS.match(text) is not None


def shown(text: str) -> str:
    """An address without its password."""
    return re.sub(r"(://[^@/:]*):[^@/]*@", r"\1:***@", text)
