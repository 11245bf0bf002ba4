"""The files behind `uri`: while a script is called, every picture of a request is a file at the path it names.

Between calls a picture has the name of its file alone, so that a request can go on to another process, and two runs of
one request can be compared.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from typing import Any, Callable, Dict, Iterator, List, Sequence

from panglot_worker.dialects.evals.requests import Task, pictures_of


class PictureFiles:
    """Writes pictures to files below one folder, which is the worker's own and goes when the worker goes."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        self._a_path = re.compile(re.escape(folder + os.sep) + r"[^\s'\"]*")

    def stored(self, task: Task) -> Task:
        """The task with names of pictures as their `uri`, and with the contents of the files to come."""
        files: Dict[str, bytes] = {}
        for req in task.reqs:
            for entry in pictures_of(req):
                # A number: no name that a client chose becomes part of a path.
                entry["uri"] = str(len(files))
                files[entry["uri"]] = entry["body"]
        return task._replace(files=files)

    @contextlib.contextmanager
    def written(self, tasks: Sequence[Task]) -> Iterator[List[Task]]:
        """The tasks with a path for each name, and with the files there as long as this is open. Raises OSError."""
        folders: List[str] = []
        try:
            yield [self._written(task, folders) for task in tasks]
        finally:
            for folder in folders:
                shutil.rmtree(folder, ignore_errors=True)

    def _written(self, task: Task, folders: List[str]) -> Task:
        folder = tempfile.mkdtemp(dir=self.folder)
        # Before the files are written: that may fail, and then the folder must go too.
        folders.append(folder)
        for name, body in task.files.items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(body)
        return _renamed(task, lambda uri: os.path.join(folder, uri) if uri in task.files else uri)

    def named(self, task: Task) -> Task:
        """A task of `written`, perhaps changed by the script, with names instead of paths again."""
        return _renamed(task, lambda uri: os.path.basename(uri) if uri.startswith(self.folder + os.sep) else uri)

    def hidden(self, text: str) -> str:
        """A text for clients: the sender of a picture must not learn its path here."""
        return self._a_path.sub("", text) if self.folder in text else text


def _renamed(task: Task, rename: Callable[[str], str]) -> Task:
    """A copy of the task with another `uri` for each picture; other values in the list are not changed."""

    def picture(entry: Any) -> Any:
        known = isinstance(entry, dict) and isinstance(entry.get("uri"), str)
        return {**entry, "uri": rename(entry["uri"])} if known else entry

    def data(value: Any) -> Any:
        return [picture(entry) for entry in value] if isinstance(value, list) else picture(value)

    return task._replace(reqs=[{**req, "data": data(req["data"])} if "data" in req else req for req in task.reqs])
