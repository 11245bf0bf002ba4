"""The list of a folder's files, by which a front and a node name the same folder."""

from __future__ import annotations

import hashlib
import json
from typing import Any, List, NamedTuple


class ListedFile(NamedTuple):
    """A file of a folder. A path that ends with a slash is an empty folder."""

    path: str
    mode: int
    size: int
    digest: str

    @property
    def is_folder(self) -> bool:
        return self.path.endswith("/")


def name_of(entries: List[ListedFile]) -> str:
    """The name of a folder: the digest of its list of files."""
    return hashlib.sha256(json.dumps([list(entry) for entry in entries]).encode()).hexdigest()


def read(value: Any) -> List[ListedFile]:
    """The list as it came over a connection. Raises ValueError or TypeError."""
    return [ListedFile(str(path), int(mode), int(size), str(digest)) for path, mode, size, digest in value]
