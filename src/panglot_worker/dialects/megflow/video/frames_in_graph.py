"""The frames of a stream that are in its graph, and the fate of the frames before them."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections import OrderedDict, deque
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Optional, Tuple

from panglot_worker.dialects.megflow.graph.envelope import Loss, Token

REMEMBERED = 256
"""The most frames with a stored time: their results are still to come, and tell it."""
MOST_LOST = 1000
"""The most lost frames that are stored until they are reported."""
NAMED = 10
"""How many lost frames a sentence names by their number."""


class OpenFrame:
    """A frame that is in the graph and has no answer yet."""

    __slots__ = ("done", "known", "number", "token")

    def __init__(self, number: int) -> None:
        self.number = number
        self.known = False
        self.done = False
        self.token: Callable[[], Any] = lambda: None


class LostFrame(NamedTuple):
    """A frame without an answer, because a node failed."""

    frame: int
    error: str


class FramesInGraph:
    """The frames of one stream. Each is answered, dropped by a node that has nothing to say, or lost by a failure."""

    def __init__(self, first: int = 0, answered: int = 0, unanswered: int = 0, lost: int = 0) -> None:
        """`first` is the first frame that may come; the rest counts those before it."""
        self.answered = answered
        self.unanswered = unanswered
        self.lost_count = lost
        self._first_lost: List[LostFrame] = []
        self._unreported: Deque[LostFrame] = deque(maxlen=MOST_LOST)
        self._open: Dict[int, OpenFrame] = {}
        self._newest = first - 1
        self._times: "OrderedDict[int, Tuple[float, float]]" = OrderedDict()
        self._dropped: Deque[Tuple[OpenFrame, Loss]] = deque()
        self._lock = threading.Lock()

    # In and out

    def enter(self, number: int, seconds: float) -> Token:
        """Note that a frame enters; returns the token it carries. Numbers rise; one that is left out never comes."""
        frame = OpenFrame(number)
        token = Token(frame, self)
        # Weak: the token must die with the last envelope of the frame.
        frame.token = weakref.ref(token)
        self._open[number] = frame
        self._newest = number
        self._times[number] = (time.monotonic(), seconds)
        if len(self._times) > REMEMBERED:
            self._times.popitem(last=False)
        return token

    def answer(self, number: Optional[int]) -> None:
        """Note that a frame was answered. Only the first answer counts."""
        frame = self._open.pop(number, None) if number is not None else None
        if frame is not None:
            frame.done = True
            with self._lock:
                self.answered += 1

    def times(self, number: Optional[int]) -> Tuple[Optional[float], Optional[float]]:
        """When a frame went in, and its second of the video; None where that is not known any more."""
        return self._times.get(number, (None, None)) if number is not None else (None, None)

    def extent(self) -> Tuple[int, int, int]:
        """The first frame that is in the graph, the number behind the last that went in, and how many are in it."""
        # A copy, made in one step: a finaliser on any thread may take a frame out.
        numbers, behind = list(self._open), self._newest + 1
        return min(numbers, default=behind), behind, len(numbers)

    # For nodes

    def is_over(self, number: int) -> bool:
        """Whether nothing of this frame will pass any more, or ever: it may have been left out."""
        return number <= self._newest and number not in self._open

    def open_token(self, number: int) -> Any:
        frame = self._open.get(number)
        return frame.token() if frame is not None else None

    def lost(self, frame: OpenFrame, loss: Loss) -> None:
        """Note that nothing is left of a frame. A finaliser calls this, so it takes no lock; `_settle` counts later."""
        self._dropped.append((frame, loss))
        self._open.pop(frame.number, None)

    # Looking

    def finish(self) -> None:
        """Settle all frames when the graph has ended: a frame that something still refers to counts as dropped."""
        if self._open:
            gc.collect()
        for frame in list(self._open.values()):
            frame.done = True
            self.lost(frame, Loss())
        self._settle()
        self._times.clear()

    def figures(self) -> Dict[str, int]:
        self._settle()
        with self._lock:
            analysed = self.answered + self.unanswered
            return {"analysed": analysed, "unanswered": self.unanswered, "lost": self.lost_count}

    def take_lost(self) -> List[LostFrame]:
        """The frames that were lost since the last call."""
        self._settle()
        with self._lock:
            unreported = list(self._unreported)
            self._unreported.clear()
            return unreported

    def complaint(self) -> str:
        """Which frames got no answer and why; nothing when all is well."""
        with self._lock:
            if not self.lost_count:
                return ""
            if not self._first_lost:
                return "%d frames got no answer: the worker ended" % self.lost_count
            numbers = ", ".join(str(lost.frame) for lost in self._first_lost)
            more = ", ..." if self.lost_count > len(self._first_lost) else ""
            what = "frame %s" % numbers if self.lost_count == 1 else "%d frames (%s%s)" % (
                self.lost_count, numbers, more)  # fmt: skip
            return "%s got no answer: %s" % (what, self._first_lost[0].error)

    def _settle(self) -> None:
        """Count what finalisers noted."""
        with self._lock:
            while self._dropped:
                frame, loss = self._dropped.popleft()
                if loss.failed:
                    self._note(LostFrame(frame.number, "node '%s' failed" % loss.node))
                else:
                    self.unanswered += 1

    def _note(self, lost: LostFrame) -> None:
        self.lost_count += 1
        self._unreported.append(lost)
        if len(self._first_lost) < NAMED:
            self._first_lost.append(lost)
