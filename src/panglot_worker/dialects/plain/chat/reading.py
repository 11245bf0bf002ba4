"""Requests in OpenAI's form, read and checked."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from panglot_worker.bodies import schema
from panglot_worker.errors import ClientError

Messages = List[Dict[str, Any]]
OURS = frozenset(("model", "messages", "prompt", "input", "stream", "stream_options", "n", "stop", "user"))
"""Fields that the script does not get, unless it has a parameter of that name."""
MOST_STOPS = 16
MOST_TEXTS = 2048


class ChatRequest(NamedTuple):
    """One chat to answer, or several prompts, each of which is a chat of one message."""

    id: str
    model: str
    chats: List[Messages]
    options: Dict[str, Any]
    stream: bool = False
    counts: bool = False
    """Whether a stream ends with the counts of tokens."""
    stop: Tuple[str, ...] = ()


class Texts(NamedTuple):
    """Texts that are to become vectors."""

    model: str
    texts: List[str]
    options: Dict[str, Any]
    base64: bool


def wrong(message: str, field: str, status: int = 400, code: str = "invalid_value") -> ClientError:
    return ClientError({"message": message, "param": field}, status, code)


def body_of(value: Any, model: str) -> Dict[str, Any]:
    """The body of a request, which must be an object and may name no other model. Raises ClientError."""
    if not isinstance(value, dict):
        raise ClientError("the body must be a JSON object")
    named = value.get("model")
    if named is not None and named != model:
        message = "the model %.80r does not exist; this server has %r" % (named, model)
        raise wrong(message, "model", 404, "model_not_found")
    return value


def chat(value: Any, model: str, request_id: str, function: Callable[..., Any]) -> ChatRequest:
    """A request to /v1/chat/completions. Raises ClientError."""
    body = body_of(value, model)
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise wrong("messages must be a list of at least one message", "messages")
    for index, message in enumerate(messages):
        _check_message(message, "messages[%d]" % index)
    return _chat_request(body, model, "chatcmpl-" + request_id, [messages], function)


def completion(value: Any, model: str, request_id: str, function: Callable[..., Any]) -> ChatRequest:
    """A request to /v1/completions: every prompt is a chat of one message. Raises ClientError."""
    body = body_of(value, model)
    chats = [[{"role": "user", "content": text}] for text in texts_of(body.get("prompt"), "prompt")]
    return _chat_request(body, model, "cmpl-" + request_id, chats, function)


def embedding(value: Any, model: str, function: Callable[..., Any]) -> Texts:
    """A request to /v1/embeddings. Raises ClientError."""
    body = body_of(value, model)
    form = body.get("encoding_format", "float")
    if form not in ("float", "base64"):
        raise wrong("encoding_format is float or base64", "encoding_format")
    options = options_for(function, body, {"encoding_format"})
    if body.get("dimensions") is not None and "dimensions" not in options:
        raise wrong("this model has vectors of one length", "dimensions")
    return Texts(model, texts_of(body.get("input"), "input"), options, form == "base64")


def texts_of(value: Any, field: str) -> List[str]:
    """A text, or a list of some, as a list. Raises ClientError."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise wrong("%s must be a text or a list of texts; tokens are not taken" % field, field)
    if len(texts) > MOST_TEXTS:
        raise wrong("%s has %d texts; %d are the most" % (field, len(texts), MOST_TEXTS), field)
    return texts


def _chat_request(
    body: Dict[str, Any], model: str, name: str, chats: List[Messages], function: Callable[..., Any]
) -> ChatRequest:
    """The request with what both kinds of it have in common. Raises ClientError."""
    if body.get("n", 1) not in (1, None):
        raise wrong("n must be 1: there is one answer", "n")
    stream = body.get("stream") or False
    if not isinstance(stream, bool):
        raise wrong("stream is true or false", "stream")
    counts = body.get("stream_options") or {}
    if not isinstance(counts, dict):
        raise wrong("stream_options must be an object", "stream_options")
    stop = _stop(body.get("stop"))
    options = options_for(function, body, set())
    return ChatRequest(name, model, chats, options, stream, bool(counts.get("include_usage")), stop)


def _stop(value: Any) -> Tuple[str, ...]:
    texts = [value] if isinstance(value, str) else [] if value is None else value
    if not isinstance(texts, list) or len(texts) > MOST_STOPS or not all(isinstance(text, str) for text in texts):
        raise wrong("stop must be a text or a list of at most %d" % MOST_STOPS, "stop")
    return tuple(text for text in texts if text)


def _check_message(message: Any, field: str) -> None:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise wrong("%s must be an object with a role" % field, field)
    content = message.get("content")
    if content is not None and not isinstance(content, (str, list)):
        raise wrong("%s.content must be a text or a list of parts" % field, field + ".content")


def options_for(function: Callable[..., Any], body: Dict[str, Any], ours: "set[str]") -> Dict[str, Any]:
    """The further fields that a function takes: all where it has `**options`, else those of its parameters."""
    first, *parameters = inspect.signature(function).parameters.values()
    named = {parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD}
    every = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    # Names that the client must not send: the function gets these arguments anyway, `self` among them.
    taken = {*OURS, *ours, first.name, *inspect.getfullargspec(function).args} - named
    given = {name: value for name, value in body.items() if value is not None}
    return {name: value for name, value in given.items() if name in named or (every and name not in taken)}


COMMON: Dict[str, Dict[str, Any]] = {
    "temperature": {"type": "number", "minimum": 0, "maximum": 2},
    "top_p": {"type": "number", "minimum": 0, "maximum": 1},
    "max_tokens": {"type": "integer", "minimum": 1},
}
"""What clients may send to a function that takes `**options`."""


def described_options(function: Callable[..., Any]) -> Dict[str, Dict[str, Any]]:
    """The schemas of the further fields that a function takes, by hints or else by defaults."""
    _, *parameters = inspect.signature(function).parameters.values()
    hints = schema.hints_of(function)
    fields: Dict[str, Dict[str, Any]] = {}
    for parameter in parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            fields = {**COMMON, **fields}
        elif parameter.kind is not parameter.VAR_POSITIONAL:
            default = None if parameter.default is parameter.empty else parameter.default
            own = schema.of_hint(hints.get(parameter.name, type(default) if default is not None else Any))
            shown = {"default": default} if isinstance(default, (bool, int, float, str)) else {}
            fields[parameter.name] = {**COMMON.get(parameter.name, {}), **own, **shown}
    return fields


def text_of(messages: Messages) -> str:
    """All text of some messages, for counting."""
    return "\n".join(text for message in messages for text in _texts(message.get("content")))


def _texts(content: Optional[Any]) -> List[str]:
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    return [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
