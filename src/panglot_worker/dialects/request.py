"""A request on its way through the stages, as dialects see it."""

from __future__ import annotations

from typing import Any, Callable, ClassVar, List, Optional, Protocol, Tuple

from panglot_worker.line import wire


class CapturedOutput(Protocol):
    """What a script prints in one call: `panglot_worker.items.capturing.Capture`."""

    on_print: Optional[Callable[[str, str], None]]
    """Is told the stream and the text of all that is printed, by the thread that prints it; None: nobody is."""

    def flush(self) -> None:
        """Have all that was printed so far reach whoever is told of it."""

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
    """What tells the front how far a call is, the same for all requests of a worker: its loop sets it, once."""
    capture: CapturedOutput
    """What captures the output of its call; the attribute is not there where nothing does."""
    record: Any
    """What `recording` notes of the stages; the attribute is not there where nobody wants it."""
    reported: float
    """When the script last reported how far it is; see `scripts.reporting`."""
    since: float
    """The moment that `seconds_left` counts from, where the dialect notes it."""

    def __init__(self, item: wire.Item) -> None:
        self.id, self.seconds_left, self.raw_head, self.body, self.location, self.buffer = item
        self.files: Any = [] if self.location else ()
        """Weak references to Files that are views into a body in shared memory; see `release`."""
        self._head: Optional[wire.Head] = None
        self.rows = 1
        """How many rows a dialect whose requests share runs by rows has seen in it."""
        self.context: Any = None
        """What a dialect notes while it decodes, for `encode`; it travels along when those are processes apart."""
        self.decoded: Optional[Tuple[Any, float]] = None
        """What `decode` gave, and the seconds it took, where that was done before its turn (`intake`)."""

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
        """The Content-Type, of which nearly every decode wants to know nothing but that."""
        raw = self.raw_head.split(b"\0", 3)[2] if self._head is None else self._head.content_type
        return raw.decode("latin-1")

    @property
    def route(self) -> bytes:
        """The route that led here."""
        return self.raw_head.split(b"\0", 2)[1] if self._head is None else self._head.route

    @property
    def has_tensors(self) -> bool:
        """Whether it came with tensors, by the Open Inference Protocol."""
        return self.raw_head.count(b"\0") >= wire.NATIVE_FIELDS

    @property
    def printed(self) -> str:
        """What the script has printed so far in its call, where the dialect wants it: see `captured_output`."""
        capture: Optional[CapturedOutput] = getattr(self, "capture", None)
        return capture.text if capture is not None else ""

    def become(self, head: wire.Head, body: wire.Buffer) -> None:
        """Be what a client of the platform would have sent instead."""
        self._head, self.body = head, body
