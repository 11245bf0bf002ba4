"""A request on its way through the stages, as dialects see it."""

from __future__ import annotations

from typing import Any, Callable, ClassVar, List, Optional, Protocol, Tuple

from panglot_worker.line import wire


class CapturedOutput(Protocol):
    """What a script prints in one call: `panglot_worker.items.capturing.Capture`."""

    on_print: Optional[Callable[[str, str], None]]
    """Is called with a stream and a text for every print, on the thread that prints; None: nothing is called."""

    def flush(self) -> None:
        """Report everything that was printed since the last report."""

    @property
    def text(self) -> str:
        """All of it so far."""

    @property
    def parts(self) -> List[Tuple[str, str]]:
        """All of it so far: the name of a stream, `stdout` or `stderr`, and a text."""


class Request:
    """An item on its way through the stages."""

    __slots__ = (
        "_head",
        "body",
        "buffer",
        "capture",
        "context",
        "decoded",
        "files",
        "id",
        "location",
        "raw_head",
        "record",
        "reported",
        "rows",
        "seconds_left",
        "since",
    )  # fmt: skip
    reporter: "ClassVar[Optional[Callable[[Request, Optional[float], Any], None]]]" = None
    """Tells the front how far a call is. It is the same for all requests of a worker, whose loop sets it once."""
    capture: CapturedOutput
    """Captures the output of the call. The attribute is missing where output is not captured."""
    record: Any
    """The notes of `recording` about the stages. The attribute is missing where nothing is recorded."""
    reported: float
    """When the script last reported its progress; see `scripts.reporting`."""
    since: float
    """The moment that `seconds_left` counts from, where the dialect notes it."""

    def __init__(self, item: wire.Item) -> None:
        self.id, self.seconds_left, self.raw_head, self.body, self.location, self.buffer = item
        self.files: Any = [] if self.location else ()
        """Weak references to Files that are views into a body in shared memory; see `release`."""
        self._head: Optional[wire.Head] = None
        self.rows = 1
        """How many rows its tensors have, for dialects whose requests share runs row by row."""
        self.context: Any = None
        """Notes that `decode` leaves for `encode`. They travel along where these run in two processes."""
        self.decoded: Optional[Tuple[Any, float]] = None
        """The result of `decode` and the seconds it took, where the item was decoded before its turn (`intake`)."""

    def release(self) -> None:
        """Release the shared memory that holds the body. A File that the script still refers to gets a copy first."""
        self.body = b""
        if self.files:
            self.retain_files()

    def retain_files(self) -> None:
        """Copy the contents of all Files that are views into shared memory and that something still refers to."""
        for reference in self.files:
            file = reference()
            if file is not None:
                file.retain()

    @property
    def head(self) -> wire.Head:
        if self._head is None:
            self._head = wire.Head.unpack(self.raw_head)
        return self._head

    @property
    def content_type(self) -> str:
        """The Content-Type, read without unpacking the head: most decoders need no other field of it."""
        raw = self.raw_head.split(b"\0", 3)[2] if self._head is None else self._head.content_type
        return raw.decode("latin-1")

    @property
    def route(self) -> bytes:
        """The route that led here."""
        return self.raw_head.split(b"\0", 2)[1] if self._head is None else self._head.route

    @property
    def has_tensors(self) -> bool:
        """Whether it came with tensors, by the Open Inference Protocol."""
        # The head of a native request ends before the field `form`.
        return self.raw_head.count(b"\0") >= wire.NATIVE_FIELDS

    @property
    def printed(self) -> str:
        """What the script has printed so far in its call, where the dialect wants it: see `captured_output`."""
        capture: Optional[CapturedOutput] = getattr(self, "capture", None)
        return capture.text if capture is not None else ""

    def become(self, head: wire.Head, body: wire.Buffer) -> None:
        """Become the request that a client of the platform would have sent: take another head and body."""
        self._head, self.body = head, body
