"""A parrot that chats, and numbers for texts."""

import time

from panglot import ClientError


class Model:
    def load(self):
        self.calls = []
        self.closed = 0

    def chat(self, messages, temperature=1.0, **options):
        """Says again what was said last, word by word."""
        text = messages[-1]["content"]
        if text == "refuse":
            raise ClientError("parrots do not say that", status=422, code="impolite")
        if text == "break":
            raise RuntimeError("secret")
        if text == "options":
            yield repr(sorted({"temperature": temperature, **options}.items()))
            return
        if text == "closed":
            yield str(self.closed)
            return
        if text == "tool":
            yield {"tool_calls": [{"index": 0, "id": "c1", "type": "function",
                                   "function": {"name": "f", "arguments": "{}"}}]}  # fmt: skip
            return
        if text == "long":
            yield {"content": "cut", "finish_reason": "length", "usage": {"prompt_tokens": 5, "completion_tokens": 9}}
            return
        try:
            for _ in range(10_000 if text == "endless" else 1):
                for word in text.split():
                    if word == "half":
                        raise RuntimeError("secret")
                    yield word + " "
                time.sleep(0.01 if text == "endless" else 0)
        finally:
            self.closed += 1

    def embed(self, texts):
        if "bad" in texts:
            raise ValueError("secret")
        self.calls.append(len(texts))
        if texts == ["calls"]:
            return [[float(max(self.calls)), float(len(self.calls))]]
        return [[float(len(text)), 0.5] for text in texts]
