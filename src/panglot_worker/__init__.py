"""What runs beside a user's script. Standard library only; CPython 3.8 and newer.

A script may use three names of this package: `ClientError`, to tell a client that its request is wrong; `File`, the
shape in which uploads and raw bodies arrive; `requests()`, ids and trace contexts of the requests it is working on.
"""

from __future__ import annotations

from panglot_worker.bodies.codec import File
from panglot_worker.current import RequestInfo, requests
from panglot_worker.errors import ClientError

__all__ = ["ClientError", "File", "RequestInfo", "requests"]
