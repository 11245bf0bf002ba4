"""Which jobs a client may see."""

from __future__ import annotations

from typing import NamedTuple

from starlette.requests import Request

from panglot.jobs.job import Job
from panglot.web.access import key_file
from panglot.web.access.keys import KeyHolder


class Viewer(NamedTuple):
    """A client that asks for jobs."""

    name: str
    """The name of its key, under which its jobs are stored; empty without a key."""
    sees_all: bool

    @classmethod
    def of(cls, request: Request) -> Viewer:
        """The client of a request that was admitted: by the server's token, a key, or the cookie of a login by either.

        The server's token sees all jobs, and so does a key with the right `admin`.
        """
        # The holder that the admission found, not the headers: a cookie stands for a key too.
        holder: KeyHolder | None = request.scope.get("key_holder")
        if holder is None:
            return cls("", True)
        return cls(holder.name, holder.key is not None and key_file.ADMIN in holder.key.may)

    def sees(self, job: Job) -> bool:
        return self.sees_all or job.owner == self.name
