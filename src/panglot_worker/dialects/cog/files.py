"""Files of requests: what an address or a data URL leads to, in a folder that lives as long as the prediction."""

from __future__ import annotations

import binascii
import io
import mimetypes
import os
import shutil
import tempfile
from base64 import b64decode
from typing import Any, Callable, List, Mapping, Sequence
from urllib.parse import unquote, unquote_to_bytes, urlsplit

from panglot_worker.dialects.cog.values import BadValue
from panglot_worker.net.hosts import AddressRefused
from panglot_worker.video.guarded import HttpStream, TooLarge, Unreachable

CHUNK = 1 << 20
LONGEST_NAME = 200


class Files:
    """The files of one prediction. `close` removes them."""

    def __init__(self, settings: Mapping[str, Any], folder: str = "") -> None:
        # Without it, or where somebody has removed it, the folder of temporary files.
        self._below = folder if os.path.isdir(folder) else None
        self._url_allow: Sequence[str] = settings.get("url_allow") or ()
        self._most = int(settings.get("fetch_bytes", 20 << 20))
        self._seconds = float(settings.get("fetch_timeout", 10.0))
        self._left = int(settings.get("fetch_urls", 16))
        """How many more addresses may be fetched."""
        self._folders: List[str] = []
        self._open: List[Any] = []

    def path(self, address: str, make: Callable[[str], Any]) -> Any:
        """A path whose name ends in that of the file, so that its extension is there. Raises BadValue."""
        name, content = self._fetched(address)
        folder = tempfile.mkdtemp(prefix="cog-", dir=self._below)
        self._folders.append(folder)
        # As the original names them: something random, then the whole name.
        descriptor, path = tempfile.mkstemp(suffix=name, dir=folder)
        with os.fdopen(descriptor, "wb") as file:
            shutil.copyfileobj(content, file, CHUNK)
        return make(path)

    def file(self, address: str) -> Any:
        """An open file. Raises BadValue."""
        name, content = self._fetched(address)
        opened = io.BytesIO(content.read())
        opened.name = name
        self._open.append(opened)
        return opened

    def _fetched(self, address: str) -> Any:
        """The name and the content behind an address. Raises BadValue."""
        return _data(address) if address.startswith("data:") else self._download(address)

    def _download(self, address: str) -> Any:
        self._left -= 1
        if self._left < 0:
            raise BadValue("the request names too many addresses", "value_error")
        content = tempfile.SpooledTemporaryFile(max_size=CHUNK)  # noqa: SIM115  the caller reads it
        size = 0
        try:
            source = HttpStream(address, self._url_allow, self._most, self._seconds)
            while True:
                data = source.read(CHUNK)
                if not data:
                    break
                size += len(data)
                # The announced length was checked before, but there may be none.
                if size > self._most:
                    raise TooLarge
                content.write(data)
            if source.broken:
                raise Unreachable("the connection ended before the file was complete")
        except (AddressRefused, TooLarge, Unreachable, OSError) as error:
            why = "it has more than %d bytes" % self._most if isinstance(error, TooLarge) else str(error)
            raise BadValue("the file cannot be fetched: %s" % why, "value_error") from None
        content.seek(0)
        return _name(urlsplit(address).path), content

    def close(self) -> None:
        """Remove all files."""
        for opened in self._open:
            opened.close()
        for folder in self._folders:
            shutil.rmtree(folder, ignore_errors=True)


def _data(address: str) -> Any:
    """The name and the content of a data URL. Raises BadValue."""
    head, comma, text = address[len("data:") :].partition(",")
    media, *parameters = head.split(";")
    try:
        content = b64decode(text, validate=True) if "base64" in parameters else unquote_to_bytes(text)
    except (binascii.Error, ValueError):
        comma = ""
        content = b""
    if not comma:
        raise BadValue("the data URL is not valid", "value_error")
    return "file" + (mimetypes.guess_extension(media) or ""), io.BytesIO(content)


def _name(path: str) -> str:
    """The last segment of an address as the name of a file: no separators, and not too long."""
    name = unquote(path.rpartition("/")[2]).replace("/", "_").replace("\0", "_")
    encoded = name.encode("utf-8", "replace")
    if len(encoded) > LONGEST_NAME:
        stem, extension = os.path.splitext(name)
        short = stem.encode("utf-8", "replace")[: LONGEST_NAME - len(extension.encode()) - 1]
        name = short.decode("utf-8", "ignore") + "~" + extension
    return name
