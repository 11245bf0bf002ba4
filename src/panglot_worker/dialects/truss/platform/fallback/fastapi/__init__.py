"""The names of FastAPI that models of Truss import, where FastAPI is not installed: those of starlette."""

from __future__ import annotations

from typing import Any, Dict, Optional

from starlette import status as status
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.requests import Request as Request
from starlette.responses import Response as Response


class HTTPException(StarletteHTTPException):
    """An answer that the model raises: its status, and a detail that JSON can hold."""

    def __init__(self, status_code: int, detail: Any = None, headers: Optional[Dict[str, str]] = None) -> None:
        super().__init__(status_code=status_code, detail=detail, headers=headers)
