"""Downloading what a job names by address: from the public internet alone, and from hosts of `--url-allow`."""

from __future__ import annotations

import os
import uuid
import zipfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, List, Optional, Sequence, Union
from urllib.parse import unquote, urlsplit

from panglot_worker.video.guarded import HttpStream, TooLarge, Unreachable

CHUNK = 1 << 20
MOST_BYTES = 5 << 30
SECONDS = 30.0

url_allow: Sequence[str] = ()
"""Hosts that need not be public; the dialect sets it when a script imports this."""


def download_files_from_urls(job_id: str, urls: Union[str, List[str]]) -> List[Optional[str]]:
    """The absolute paths of the files behind addresses, below `jobs/ID`; None for one that cannot be had.

    Raises AddressRefused for an address that is not public.
    """
    folder = os.path.abspath(os.path.join("jobs", os.path.basename(job_id), "downloaded_files"))
    os.makedirs(folder, exist_ok=True)

    def download(url: Optional[str]) -> Optional[str]:
        if url is None:
            return None
        path = os.path.join(folder, str(uuid.uuid4()) + os.path.splitext(_name(url))[1])
        try:
            _save(url, path)
        except (OSError, Unreachable) as error:
            print("Failed to download %s: %s" % (url, error))
            return None
        return path

    with ThreadPoolExecutor() as executor:
        return list(executor.map(download, [urls] if isinstance(urls, str) else urls))


def file(file_url: str) -> Dict[str, Any]:
    """Download a file below `job_files`, and unpack it where it is a zip."""
    os.makedirs("job_files", exist_ok=True)
    original, name = _name(file_url), str(uuid.uuid4())
    kind = os.path.splitext(original)[1].replace(".", "")
    path = os.path.abspath(os.path.join("job_files", "%s.%s" % (name, kind)))
    _save(file_url, path)
    extracted = None
    if kind == "zip":
        extracted = os.path.abspath(os.path.join("job_files", name))
        os.makedirs(extracted, exist_ok=True)
        with zipfile.ZipFile(path) as archive:
            archive.extractall(extracted)
    return {"file_path": path, "type": kind, "original_name": original, "extracted_path": extracted}


def _name(url: str) -> str:
    """The last segment of an address; a slash hidden in it would lead out of the folder."""
    return os.path.basename(unquote(urlsplit(url).path))


def _save(url: str, path: str) -> None:
    """Write what an address leads to. Raises AddressRefused, Unreachable, TooLarge and OSError."""
    source = HttpStream(url, url_allow, MOST_BYTES, SECONDS)
    size = 0
    with open(path, "wb") as target:
        while True:
            data = source.read(CHUNK)
            if not data:
                break
            size += len(data)
            if size > MOST_BYTES:
                raise TooLarge("the file has more than %d bytes" % MOST_BYTES)
            target.write(data)
    if source.broken:
        raise Unreachable("the connection ended before the file was complete")
