"""The frames of a stream that are in its graph, and what became of those that were."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections import OrderedDict, deque
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Optional, Tuple

from panglot_worker.dialects.megflow.envelope import Loss, Token

REMEMBERED = 256
"""Frames whose time is kept for the results that will name them."""
TOLD = 1000
"""Lost frames that are kept until somebody asks for them."""
NAMED = 10
"""Lost frames that a sentence names by their number."""


class Passage:
    """A frame on its way through the graph."""

    __slots__ = ("done", "known", "number", "token")

    def __init__(self, number: int) -> None:
        self.number = number
        self.known = False
        self.done = False
        self.token: Callable[[], Any] = lambda: None


class Lost(NamedTuple):
    """A frame without an answer, because a node failed."""

    frame: int
    error: str


class Underway:
    """Every frame that enters is answered, let go by a node that has nothing to say of it, or lost with a reason."""

    def __init__(self, first: int = 0, answered: int = 0, unanswered: int = 0, lost: int = 0) -> None:
        """`first` is the first frame that may come; the rest counts those before it."""
        self.answered = answered
        self.unanswered = unanswered
        self.lost_count = lost
        self._first_lost: List[Lost] = []
        self._untold: Deque[Lost] = deque(maxlen=TOLD)
        self._open: Dict[int, Passage] = {}
        self._newest = first - 1
        self._times: "OrderedDict[int, Tuple[float, float]]" = OrderedDict()
        self._dropped: Deque[Tuple[Passage, Loss]] = deque()
        self._lock = threading.Lock()

    # In and out

    def enter(self, number: int, seconds: float) -> Token:
        """What a frame carries with it. Numbers rise; one that is left out never comes."""
        passage = Passage(number)
        token = Token(passage, self)
        passage.token = weakref.ref(token)
        self._open[number] = passage
        self._newest = number
        self._times[number] = (time.monotonic(), seconds)
        if len(self._times) > REMEMBERED:
            self._times.popitem(last=False)
        return token

    def answer(self, number: Optional[int]) -> None:
        """The answer to a frame is there for whoever wants it. Only the first is counted."""
        passage = self._open.pop(number, None) if number is not None else None
        if passage is not None:
            passage.done = True
            with self._lock:
                self.answered += 1

    def times(self, number: Optional[int]) -> Tuple[Optional[float], Optional[float]]:
        """When a frame went in, and its second of the video; None where that is not known any more."""
        return self._times.get(number, (None, None)) if number is not None else (None, None)

    def extent(self) -> Tuple[int, int, int]:
        """The first frame that is in the graph, the number behind the last that went in, and how many are in it."""
        found, behind = list(self._open), self._newest + 1
        return min(found, default=behind), behind, len(found)

    # For nodes

    def is_over(self, number: int) -> bool:
        """Whether nothing of this frame will pass any more, or ever: it may have been left out."""
        return number <= self._newest and number not in self._open

    def open_token(self, number: int) -> Any:
        passage = self._open.get(number)
        return passage.token() if passage is not None else None

    def lost(self, passage: Passage, loss: Loss) -> None:
        """Nothing is left of a frame. Called by a finaliser, so it takes no lock and only leaves a note."""
        self._dropped.append((passage, loss))
        self._open.pop(passage.number, None)

    # Looking

    def finish(self) -> None:
        """The graph has ended. What somebody still holds is let go of."""
        if self._open:
            gc.collect()
        for passage in list(self._open.values()):
            passage.done = True
            self.lost(passage, Loss())
        self._settle()
        self._times.clear()

    def figures(self) -> Dict[str, int]:
        self._settle()
        with self._lock:
            analysed = self.answered + self.unanswered
            return {"analysed": analysed, "unanswered": self.unanswered, "lost": self.lost_count}

    def take_lost(self) -> List[Lost]:
        """The frames that were lost since this was last asked."""
        self._settle()
        with self._lock:
            found = list(self._untold)
            self._untold.clear()
            return found

    def complaint(self) -> str:
        """Which frames got no answer and why; nothing when all is well."""
        with self._lock:
            if not self.lost_count:
                return ""
            if not self._first_lost:
                return "%d frames got no answer: the worker ended" % self.lost_count
            numbers = ", ".join(str(one.frame) for one in self._first_lost)
            more = ", ..." if self.lost_count > len(self._first_lost) else ""
            what = "frame %s" % numbers if self.lost_count == 1 else "%d frames (%s%s)" % (
                self.lost_count, numbers, more)  # fmt: skip
            return "%s got no answer: %s" % (what, self._first_lost[0].error)

    def _settle(self) -> None:
        """Count what finalisers noted."""
        with self._lock:
            while self._dropped:
                passage, loss = self._dropped.popleft()
                if loss.failed:
                    self._note(Lost(passage.number, "node '%s' failed" % loss.node))
                else:
                    self.unanswered += 1

    def _note(self, lost: Lost) -> None:
        self.lost_count += 1
        self._untold.append(lost)
        if len(self._first_lost) < NAMED:
            self._first_lost.append(lost)
