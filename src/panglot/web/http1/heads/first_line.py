"""The first line of a request: the parser also accepts RTSP, and reports it as HTTP."""

from __future__ import annotations

USUAL_END = len(b" HTTP/1.1")


class FirstLine:
    """What has come of the first line of the request being read."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.partial = b""
        """The beginning of a line that has not come whole yet."""

    def is_of_rtsp(self, data: bytes) -> bool:
        """Whether this is a request of RTSP; `data` are the bytes behind the partial line."""
        # Where the first line ends in HTTP/1.1, as nearly always, there is nothing to look at.
        if not self.partial and data.find(b"\r\n") - data.find(b" HTTP/1.1\r\n") == USUAL_END:
            return False
        line = (self.partial + data).lstrip(b"\r\n")
        end = line.find(b"\r\n")
        self.partial = b"" if end >= 0 else line[: self._most]
        return end >= 0 and line.startswith(b" RTSP/", line.rfind(b" ", 0, end))
