"""Downloading what a job names by address: from the public internet alone, and from hosts of `--url-allow`."""

from __future__ import annotations

import contextlib
import os
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, List, Mapping, Optional, Union
from urllib.parse import unquote, urlsplit

from panglot_worker.files import zip_files
from panglot_worker.video.guarded import HttpStream, TooLarge, Unreachable

CHUNK = 1 << 20
LONGEST_EXTENSION = 32

settings: Mapping[str, Any] = {}
"""How much may be fetched, and from which further hosts; the dialect sets it when a script imports this."""


def download_files_from_urls(job_id: str, urls: Union[str, List[str]]) -> List[Optional[str]]:
    """The absolute paths of the files behind addresses, below `jobs/ID`; None for one that cannot be had.

    Raises AddressRefused for an address that is not public, and ValueError for more addresses than `fetch_urls`.
    """
    named = [urls] if isinstance(urls, str) else urls
    most = int(settings.get("fetch_urls", 16))
    if len(named) > most:
        raise ValueError("the job names %d addresses, more than %d; --fetch-urls allows more" % (len(named), most))
    own = os.path.basename(job_id)
    folder = os.path.abspath(os.path.join("jobs", "_" if own in ("", ".", "..") else own, "downloaded_files"))
    os.makedirs(folder, exist_ok=True)

    def download(url: Optional[str]) -> Optional[str]:
        if url is None:
            return None
        path = os.path.join(folder, str(uuid.uuid4()) + _extension(_name(url)))
        try:
            _save(url, path)
        except (OSError, Unreachable, TooLarge) as error:
            print("Failed to download %s: %s" % (url, error))
            return None
        return path

    with ThreadPoolExecutor() as executor:
        return list(executor.map(download, named))


def file(file_url: str) -> Dict[str, Any]:
    """Download a file below `job_files`, and unpack it where it is a zip.

    Raises AddressRefused, Unreachable, TooLarge, OSError, and BadArchive.
    """
    os.makedirs("job_files", exist_ok=True)
    original, name = _name(file_url), str(uuid.uuid4())
    kind = _extension(original).replace(".", "")
    path = os.path.abspath(os.path.join("job_files", "%s.%s" % (name, kind)))
    _save(file_url, path)
    extracted = None
    if kind == "zip":
        extracted = os.path.abspath(os.path.join("job_files", name))
        zip_files.unpack(path, extracted, _most_bytes())
    return {"file_path": path, "type": kind, "original_name": original, "extracted_path": extracted}


def _most_bytes() -> int:
    return int(settings.get("fetch_bytes", 20 << 20))


def _name(url: str) -> str:
    """The last segment of an address; a slash hidden in it would lead out of the folder."""
    return os.path.basename(unquote(urlsplit(url).path))


def _extension(name: str) -> str:
    """The extension of a name, with its dot; empty for one that no file can have."""
    extension = os.path.splitext(name)[1]
    return extension if len(extension) <= LONGEST_EXTENSION and extension.isprintable() else ""


def _save(url: str, path: str) -> None:
    """Write what an address leads to, or no file. Raises AddressRefused, Unreachable, TooLarge and OSError."""
    most = _most_bytes()
    source = HttpStream(url, settings.get("url_allow") or (), most, float(settings.get("fetch_timeout", 10.0)))
    try:
        with open(path, "wb") as target:
            _copy(source, target, most)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(path)
        raise


def _copy(source: HttpStream, target: Any, most: int) -> None:
    size = 0
    while True:
        data = source.read(CHUNK)
        if not data:
            break
        size += len(data)
        # The announced length was checked before, but there may be none.
        if size > most:
            raise TooLarge("the file has more than %d bytes" % most)
        target.write(data)
    if source.broken:
        raise Unreachable("the connection ended before the file was complete")
