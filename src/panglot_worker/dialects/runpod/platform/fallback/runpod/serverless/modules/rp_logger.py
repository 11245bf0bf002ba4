"""The SDK's logger: lines on standard output, with the id of the job."""

from __future__ import annotations

import json
import os
from typing import Any, Optional, Union

MAX_MESSAGE_LENGTH = 4096
LOG_LEVELS = ["NOTSET", "TRACE", "DEBUG", "INFO", "WARN", "ERROR"]


def _validate_log_level(log_level: Union[str, int]) -> str:
    """The name of a level, given by name or number. Raises ValueError."""
    if isinstance(log_level, str) and log_level.upper() in LOG_LEVELS:
        return log_level.upper()
    if isinstance(log_level, int) and 0 <= log_level < len(LOG_LEVELS):
        return LOG_LEVELS[log_level]
    raise ValueError("Invalid debug level: %s" % log_level)


class RunPodLogger:
    """Writes lines from a level on; all objects are the same one."""

    __instance: "Optional[RunPodLogger]" = None
    level = _validate_log_level(os.environ.get("RUNPOD_LOG_LEVEL", os.environ.get("RUNPOD_DEBUG_LEVEL", "DEBUG")))

    def __new__(cls) -> "RunPodLogger":
        if RunPodLogger.__instance is None:
            RunPodLogger.__instance = object.__new__(cls)
        return RunPodLogger.__instance

    def set_level(self, new_level: Union[str, int]) -> None:
        """Write lines of this level and above. Raises ValueError."""
        self.level = _validate_log_level(new_level)
        self.info("Log level set to %s" % self.level)

    def log(self, message: Any, message_level: str = "INFO", job_id: Optional[str] = None) -> None:
        """Write a line: JSON where the platform's variable names an endpoint, else text."""
        if self.level == "NOTSET":
            return
        if message_level != "TIP" and LOG_LEVELS.index(self.level) > LOG_LEVELS.index(message_level):
            return
        text = _shortened(str(message))
        if os.environ.get("RUNPOD_ENDPOINT_ID"):
            print(json.dumps({"requestId": job_id, "message": text, "level": message_level}), flush=True)
            return
        print("%s| %s" % (message_level.ljust(7), "%s | %s" % (job_id, text) if job_id else text), flush=True)

    def secret(self, secret_name: str, secret: Any) -> None:
        """Write the name of a secret, with its first and last character."""
        text = str(secret)
        self.info("%s: %s" % (secret_name, text[0] + "*" * (len(text) - 2) + text[-1]))

    def debug(self, message: Any, request_id: Optional[str] = None) -> None:
        self.log(message, "DEBUG", request_id)

    def info(self, message: Any, request_id: Optional[str] = None) -> None:
        self.log(message, "INFO", request_id)

    def warn(self, message: Any, request_id: Optional[str] = None) -> None:
        self.log(message, "WARN", request_id)

    def error(self, message: Any, request_id: Optional[str] = None) -> None:
        self.log(message, "ERROR", request_id)

    def tip(self, message: Any) -> None:
        self.log(message, "TIP")

    def trace(self, message: Any, request_id: Optional[str] = None) -> None:
        self.log(message, "TRACE", request_id)


def _shortened(text: str) -> str:
    """A text without its middle, where it is very long."""
    if len(text) <= MAX_MESSAGE_LENGTH:
        return text
    half = MAX_MESSAGE_LENGTH // 2
    return "%s\n...TRUNCATED %d CHARACTERS...\n%s" % (text[:half], len(text) - MAX_MESSAGE_LENGTH, text[-half:])
