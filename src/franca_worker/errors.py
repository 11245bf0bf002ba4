"""What can go wrong around a script's call, and whose fault it is.

Exception
├── ClientError   the request is wrong: 400 to 499, the message is sent to the client
└── EncodeError   the script's result cannot be sent: 500, the message is for the script's author
"""

from __future__ import annotations


class ClientError(Exception):
    """The client is wrong. Scripts may raise it; `message` and `status` are sent back.

    Raises ValueError when `status` is not 400 to 499.
    """

    def __init__(self, message: str, status: int = 400) -> None:
        if not 400 <= status <= 499:
            raise ValueError(f"a ClientError has a status of 400 to 499, not {status}")
        super().__init__(message, status)
        self.message = message
        self.status = status

    def __str__(self) -> str:
        return self.message


class EncodeError(Exception):
    """The script returned something that cannot be sent: not serialisable, too deep or too large."""

    status = 500
