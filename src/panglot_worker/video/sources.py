"""From what a client wrote to something a decoder can open."""

from __future__ import annotations

from panglot_worker.net.hosts import AddressRefused, Allowed
from panglot_worker.net.urls import parse
from panglot_worker.video import urls
from panglot_worker.video.files import open_file
from panglot_worker.video.frames import Source
from panglot_worker.video.limits import Rules

CAMERA, FILE = "camera", "file"


def find(text: str, rules: Rules) -> Source:
    """An address is checked as far as that goes without asking anyone; a file is opened. Raises AddressRefused."""
    if urls.CAMERA.fullmatch(text):
        if not rules.cameras:
            raise AddressRefused("cameras may be named only while the server listens on loopback")
        return Source(CAMERA, text, text)
    if urls.is_address(text):
        scheme = parse(text, Allowed(rules.url_allow), urls.SCHEMES).scheme
        return Source("rtsp" if scheme == "rtsp" else "http", text, urls.shown(text))
    return Source(FILE, open_file(text, rules), text)
