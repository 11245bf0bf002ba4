"""The response that scripts of the older containers return."""

from typing import Any, Dict, Mapping, Optional


class Response:
    """A body with its content type and status."""

    def __init__(
        self,
        response: Any = None,
        accept: Optional[str] = None,
        status: int = 200,
        headers: Optional[Mapping[str, str]] = None,
        mimetype: Optional[str] = None,
        **more: Any,
    ) -> None:
        self.response = response
        self.status_code = status
        self.mimetype = mimetype or accept or more.get("content_type") or "application/json"
        self.headers: Dict[str, str] = {"Content-Type": self.mimetype, **(headers or {})}

    def get_data(self, as_text: bool = False) -> Any:
        body = self.response
        if body is None:
            body = b""
        if isinstance(body, str):
            return body if as_text else body.encode("utf-8")
        return bytes(body).decode("utf-8") if as_text else bytes(body)
