"""The errors around a script's call, and who is to blame for each.

Exception
├── ClientError   the request is wrong: 400 to 499, the message is sent to the client
├── EncodeError   the script's result cannot be sent: 500, the message is for the script's author
└── ScriptError   the script cannot be served at all: the load fails, the line is for the script's author

BaseException
└── Interrupted   nobody waits for the call any more: raised where the script is, so that it can clean up and end
"""

from __future__ import annotations

from typing import Any

from panglot_worker.clipping import LONGEST_MESSAGE, SEE_LOG, clipped

SCRIPT_ERROR = "the script failed on this request" + SEE_LOG
WRONG_REQUEST = "the script refuses this request"
BAD_RESULT = "the script's result cannot be sent" + SEE_LOG


class ScriptError(Exception):
    """The script does not fulfil its dialect's contract. One line for its author: what, where, how to mend it."""

    def __init__(self, problem: str, file: str = "", line: int = 0, fix: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.file = file
        self.line = line
        self.fix = fix


class ClientError(Exception):
    """Raise it in a script to refuse a request. The client gets `message`, `status` and `code`.

    The message may be a dict: its `message` is the text, and what else is in it is sent beside that. Raises ValueError
    when `status` is not 400 to 499, or `code` is not a word.
    """

    def __init__(self, message: Any, status: int = 400, code: str = "bad_request") -> None:
        if not 400 <= status <= 499:
            raise ValueError(f"a ClientError has a status of 400 to 499, not {status}")
        if not isinstance(code, str) or not 0 < len(code) <= 64 or not code.isprintable():
            raise ValueError("the code of a ClientError is a word of at most 64 characters")
        super().__init__(message, status, code)
        fields = message if isinstance(message, dict) else {"message": message}
        self.message = str(fields.get("message", WRONG_REQUEST))
        self.details = {key: value for key, value in fields.items() if key != "message"}
        self.status = status
        self.code = code

    def __str__(self) -> str:
        return self.message


class Interrupted(BaseException):
    """Nobody waits for this call any more, and the setting `on_leave` ends it: clean up in `finally`, do not catch it.

    Not an Exception, so that `except Exception` in a script lets it pass.
    """


class EncodeError(Exception):
    """The script's result cannot be sent. The path to the wrong value grows as the error passes its containers."""

    status = 500

    def __init__(self, reason: str, fix: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.fix = fix
        self._keys: list[Any] = []
        self._containers: list[int] = []

    def leave(self, container: Any, key: Any) -> None:
        """Notes that the culprit is `container[key]`, or inside it."""
        self._keys.insert(0, key)
        self._containers.append(id(container))

    def shift(self, start: int) -> None:
        """Notes that the outermost container was a slice that began at `start`."""
        if self._keys:
            self._keys[0] += start

    @property
    def path(self) -> str:
        """Where the culprit is, like `$.result[3].box`."""
        steps = [_step(key) for key in self._keys[:16]]
        return "$" + "".join(steps) + ("..." if len(self._keys) > 16 else "")

    def __str__(self) -> str:
        cyclic = len(set(self._containers)) < len(self._containers)
        return f"the result cannot be sent: {self.path}: {'it contains itself' if cyclic else self.reason}"


def message_of(error: BaseException) -> str:
    """The message of an exception, cut when it is long; its type where a script's exception cannot give its message."""
    try:
        return clipped(str(error), LONGEST_MESSAGE)
    except BaseException as failure:  # noqa: BLE001  __str__ of a script's exception raises anything
        return "a %s that cannot say what it is (its __str__ raised %s)" % (
            type(error).__name__,
            type(failure).__name__,
        )


def described(error: BaseException) -> str:
    """An exception's type, and its message if it has one."""
    text = message_of(error)
    return "%s: %s" % (type(error).__name__, text) if text else type(error).__name__


def _step(key: Any) -> str:
    if isinstance(key, str) and key.isidentifier():
        return f".{key[:40]}"
    return f"[{repr(key)[:40]}]"
