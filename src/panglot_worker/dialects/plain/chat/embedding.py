"""`embed(texts)` behind /v1/embeddings: the texts of many requests in one call."""

from __future__ import annotations

import base64
import sys
from array import array
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from panglot_worker.bodies import codec
from panglot_worker.dialects.base import Answer, Request, Stages
from panglot_worker.dialects.plain.chat import reading
from panglot_worker.dialects.plain.chat.composing import Count, words
from panglot_worker.dialects.plain.chat.reading import Texts
from panglot_worker.dialects.plain.endpoints import Bodies, Endpoint, Function, alone, is_async
from panglot_worker.errors import EncodeError
from panglot_worker.items.results import one_each
from panglot_worker.line.description import RouteDescription

EMBEDDINGS = "/v1/embeddings"


class EmbedEndpoint(Endpoint):
    """A route whose requests and answers have OpenAI's form, and lead to the script's `embed`."""

    def __init__(self, function: Function, model: str, count: Optional[Count], most: int) -> None:
        super().__init__(EMBEDDINGS, function, batched=True)
        self.model = model
        self.count = count or words
        self.most = most
        """The most texts of one call."""

    def check(self) -> None:
        """Any function whose first argument is `texts` will do; that was looked at when the script was read."""

    def stages(self, bodies: Bodies, called: Callable[[Function], Function], uses_request: bool) -> Stages:
        """Batches are of requests; the script is called with their texts."""
        embed = called(self.function)

        def decode(request: Request) -> Texts:
            request.context = wanted = reading.embedding(bodies.decode(request), self.model, self.function)
            return wanted

        def encode(vectors: Any, request: Request) -> Answer:
            return bodies.encode(self.answer(vectors, request.context), request)

        infer = self._together_later(embed) if is_async(embed) else self._together(embed)
        return Stages(decode=decode, infer=alone(infer, is_async(embed)), infer_batch=infer, encode=encode)

    def _together(self, embed: Function) -> Function:
        def infer_batch(items: List[Texts]) -> List[List[Any]]:
            vectors: List[Any] = []
            for texts, options in self.calls(items):
                vectors += one_each(embed(texts, **options), len(texts))
            return dealt(vectors, items)

        return infer_batch

    def _together_later(self, embed: Function) -> Function:
        async def infer_batch(items: List[Texts]) -> List[List[Any]]:
            vectors: List[Any] = []
            for texts, options in self.calls(items):
                vectors += one_each(await embed(texts, **options), len(texts))
            return dealt(vectors, items)

        return infer_batch

    def calls(self, items: Sequence[Texts]) -> Iterator[Tuple[List[str], Dict[str, Any]]]:
        """The calls of the script for some requests, in order: texts side by side with the same options share one."""
        waiting: List[str] = []
        options: Dict[str, Any] = {}
        for item in items:
            for text in item.texts:
                if waiting and (item.options != options or len(waiting) == self.most):
                    yield waiting, options
                    waiting = []
                options = item.options
                waiting.append(text)
        yield waiting, options

    def answer(self, vectors: Sequence[Any], wanted: Texts) -> Dict[str, Any]:
        """The answer to one request. Raises EncodeError for what is no vector."""
        shown: Callable[[Any], Any] = in_base64 if wanted.base64 else numbers
        data = [{"object": "embedding", "index": i, "embedding": shown(vector)} for i, vector in enumerate(vectors)]
        tokens = sum(int(self.count(text)) for text in wanted.texts)
        counts = {"prompt_tokens": tokens, "total_tokens": tokens}
        return {"object": "list", "data": data, "model": wanted.model, "usage": counts}

    def describe(self, bodies: Bodies, example: Any) -> RouteDescription:
        """The description for `/docs`, in OpenAI's form."""
        said = super().describe(bodies, {"model": self.model, "input": ["Hello"]})
        texts = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}
        fields = {"model": {"type": "string"}, "input": texts, "encoding_format": {"enum": ["float", "base64"]}}
        schema = {"type": "object", "properties": fields, "required": ["input"]}
        return {**said, "request_schema": schema, "response_schema": {"type": "object"}}


def dealt(vectors: List[Any], items: Sequence[Texts]) -> List[List[Any]]:
    """The vectors of each request."""
    rest = iter(vectors)
    return [[next(rest) for _ in item.texts] for item in items]


def numbers(vector: Any) -> List[float]:
    """A vector as a list. Raises EncodeError."""
    try:
        numbers = codec.convert(vector) if not isinstance(vector, (list, tuple)) else list(vector)
        return array("d", numbers).tolist()
    except (TypeError, ValueError) as error:
        raise EncodeError("embed must give a list of numbers for each text: %s" % error) from None


def in_base64(vector: Any) -> str:
    """A vector as 32-bit floats, the lowest byte first, in base64: what OpenAI's own client asks for."""
    floats = array("f", numbers(vector))
    if sys.byteorder == "big":
        floats.byteswap()
    return base64.b64encode(floats.tobytes()).decode("ascii")
