"""The answer to one chat, put together from what the script gives."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence

Count = Callable[[str], int]


class Stopper:
    """Lets text pass up to the first stop text. An end of it that may begin a stop text waits for the next piece."""

    def __init__(self, stops: Sequence[str]) -> None:
        self.stops = stops
        self.unsent = ""
        self.met = False

    def take(self, text: str) -> str:
        """Take in a piece of text. Returns the text that may be sent by now."""
        if not self.stops:
            return text
        text = self.unsent + text
        starts = [start for start in map(text.find, self.stops) if start >= 0]
        if starts:
            self.met, self.unsent = True, ""
            return text[: min(starts)]
        keep = max(_overlap(text, stop) for stop in self.stops)
        self.unsent = text[len(text) - keep :]
        return text[: len(text) - keep]

    def rest(self) -> str:
        unsent, self.unsent = self.unsent, ""
        return unsent


def _overlap(text: str, stop: str) -> int:
    """How many characters at the end of a text are the beginning of another."""
    return next((size for size in range(min(len(text), len(stop) - 1), 0, -1) if stop.startswith(text[-size:])), 0)


class Composer:
    """Gathers the pieces that the script gives for one chat: texts, and dicts with a text and further fields."""

    def __init__(self, stops: Sequence[str]) -> None:
        self.stopper = Stopper(stops)
        self.texts: List[str] = []
        self.pieces = 0
        self.calls: List[Any] = []
        self.finish = ""
        self.counted: Dict[str, Any] = {}

    @property
    def done(self) -> bool:
        return self.stopper.met

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def take(self, piece: Any) -> Dict[str, Any]:
        """Take in a piece. Returns the delta of it for a stream. Raises TypeError for a value that is no piece."""
        delta: Dict[str, Any] = {}
        if isinstance(piece, dict):
            self.finish = str(piece.get("finish_reason") or self.finish)
            self.counted = piece.get("usage") or self.counted
            if piece.get("tool_calls"):
                self.calls += piece["tool_calls"]
                delta["tool_calls"] = piece["tool_calls"]
            piece = piece.get("content") or ""
        if not isinstance(piece, str):
            raise TypeError("chat must give texts, or dicts with content, not %s" % type(piece).__name__)
        self.pieces += bool(piece)
        text = self.stopper.take(piece)
        return {**delta, **self._add(text)}

    def end(self) -> Dict[str, Any]:
        """The last delta of a stream, when there are no more pieces: the text that waited for more."""
        return self._add(self.stopper.rest())

    def _add(self, text: str) -> Dict[str, Any]:
        self.texts.append(text)
        return {"content": text} if text else {}

    @property
    def reason(self) -> str:
        return self.finish or ("tool_calls" if self.calls else "stop")


def usage(prompts: Sequence[str], composers: Sequence[Composer], count: Optional[Count]) -> Dict[str, int]:
    """The counts of tokens: what the script says of each chat, what its `count_tokens` says, or pieces and words."""
    before = after = 0
    for prompt, composer in zip(prompts, composers):
        reported = composer.counted
        before += int(reported.get("prompt_tokens") or (count or words)(prompt))
        counted = count(composer.text) if count else composer.pieces if composer.pieces > 1 else words(composer.text)
        after += int(reported.get("completion_tokens") or counted)
    return {"prompt_tokens": before, "completion_tokens": after, "total_tokens": before + after}


def words(text: str) -> int:
    return len(text.split())
