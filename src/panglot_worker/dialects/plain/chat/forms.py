"""The shapes of answers: those of /v1/chat/completions, and those of /v1/completions."""

from __future__ import annotations

import json
import time
from typing import Any, Dict, List, Optional

from panglot_worker.dialects.plain.chat.composing import Composer
from panglot_worker.dialects.plain.chat.reading import ChatRequest
from panglot_worker.dialects.plain.endpoints import EncodedPart

END = EncodedPart(b"data: [DONE]\n\n")


def event(value: Dict[str, Any]) -> EncodedPart:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return EncodedPart(b"data: " + text.encode("utf-8", "replace") + b"\n\n")


def failed(message: str, code: str, status: int) -> EncodedPart:
    """The part that tells a client that nothing more comes, and why."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return event({"error": {"message": message, "type": kind, "param": None, "code": code}})


class Form:
    """The shape of one kind of answer."""

    whole = "text_completion"
    part = "text_completion"

    def __init__(self, chat_request: ChatRequest) -> None:
        self.chat_request = chat_request
        self.created = int(time.time())

    def _head(self, kind: str) -> Dict[str, Any]:
        return {"id": self.chat_request.id, "object": kind, "created": self.created, "model": self.chat_request.model}

    def answer(self, composers: List[Composer], counts: Dict[str, int]) -> Dict[str, Any]:
        """The whole answer, of one that is not streamed."""
        choices = [self.choice(index, composer) for index, composer in enumerate(composers)]
        return {**self._head(self.whole), "choices": choices, "usage": counts}

    def chunk(self, index: int, delta: Dict[str, Any], finish: Optional[str] = None) -> EncodedPart:
        """One part of a streamed answer."""
        choice = {"index": index, **self.delta(delta), "logprobs": None, "finish_reason": finish}
        more = {"usage": None} if self.chat_request.counts else {}
        return event({**self._head(self.part), "choices": [choice], **more})

    def counts(self, counts: Dict[str, int]) -> EncodedPart:
        return event({**self._head(self.part), "choices": [], "usage": counts})

    def begin(self, index: int) -> List[EncodedPart]:
        """The parts before the text of a choice."""
        return []

    def choice(self, index: int, composer: Composer) -> Dict[str, Any]:
        return {"index": index, "text": composer.text, "logprobs": None, "finish_reason": composer.reason}

    def delta(self, delta: Dict[str, Any]) -> Dict[str, Any]:
        return {"text": delta.get("content", "")}


class ChatForm(Form):
    """The shape of an answer to a chat."""

    whole = "chat.completion"
    part = "chat.completion.chunk"

    def begin(self, index: int) -> List[EncodedPart]:
        return [self.chunk(index, {"role": "assistant", "content": ""})]

    def choice(self, index: int, composer: Composer) -> Dict[str, Any]:
        """The message, with the calls of tools where the script gave some."""
        message: Dict[str, Any] = {"role": "assistant", "content": composer.text or None, "refusal": None}
        if composer.calls:
            message["tool_calls"] = composer.calls
        elif not composer.text:
            message["content"] = ""
        return {"index": index, "message": message, "logprobs": None, "finish_reason": composer.reason}

    def delta(self, delta: Dict[str, Any]) -> Dict[str, Any]:
        return {"delta": delta}
