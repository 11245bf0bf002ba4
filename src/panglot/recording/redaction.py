"""Keeps secrets out of a recording: credentials always, and everything that `--redact` names."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterable
from typing import Any

from panglot.recording.forms import MULTIPART, URLENCODED, clean_multipart, clean_urlencoded
from panglot.recording.json_paths import JsonPath, replaced
from panglot.recording.recording import Pair, RecordedMessage

SUBSTITUTE = "[redacted]"
SECRET_WORDS = frozenset(
    [
        "auth",
        "authorization",
        "authentication",
        "token",
        "tokens",
        "secret",
        "password",
        "passwd",
        "pwd",
        "cookie",
        "cookies",
        "key",
        "keys",
        "apikey",
        "appkey",
        "appcode",
        "credential",
        "credentials",
        "signature",
        "sig",
        "session",
        "sessionid",
        "jwt",
        "bearer",
        "sid",
    ]
)
RUN_TOGETHER = ("authorization", "apikey", "accesskey", "secretkey", "authtoken", "accesstoken", "password", "appcode")
"""Endings of secret names that are written without a separator."""
WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
ADDRESSES = ("location", "referer", "content-location", "link")
"""Headers that may have an address with a secret in its query."""
LARGEST_DECODED = 256 << 20
JSON_LINES = ("application/x-ndjson", "application/jsonl", "application/json-lines", "application/x-jsonlines")
EVENTS = "text/event-stream"


def is_secret(name: str) -> bool:
    """Whether a header or a parameter carries a credential, judged by its name."""
    words = {word.lower() for word in WORD.findall(name)}
    return bool(words & SECRET_WORDS) or re.sub("[^a-z0-9]", "", name.lower()).endswith(RUN_TOGETHER)


class Redaction:
    """The rules of one recording. A rule that begins with a slash is a place in JSON bodies, others name headers."""

    def __init__(self, rules: Iterable[str] = (), secrets: Iterable[str] = ()) -> None:
        """`secrets` are values that no header and no address may show. Raises ValueError for a malformed path."""
        self.secrets = tuple(secret for secret in secrets if secret)
        rules = tuple(rules)
        self.paths = [JsonPath.parse(rule) for rule in rules if rule.startswith(("/", "["))]
        self.headers = frozenset(rule.lower() for rule in rules if not rule.startswith(("/", "[")))

    def apply(self, pair: Pair) -> None:
        """Take everything secret out of a pair, in place. The names of removed values are noted in `withheld`."""
        request = pair.request
        request.target, names = without_secrets(request.target, self.headers)
        for secret in self.secrets:
            request.target = request.target.replace(secret, SUBSTITUTE)
        self._clean(request)
        request.withheld += [f"?{name}" for name in names]
        self._clean(pair.answer)

    def _clean(self, message: RecordedMessage) -> None:
        stored = []
        for name, value in message.headers:
            if is_secret(name) or name.lower() in self.headers or any(secret in value for secret in self.secrets):
                message.withheld.append(name.lower())
            elif name.lower() in ADDRESSES:
                stored.append((name, without_secrets(value, self.headers)[0]))
            else:
                stored.append((name, value))
        message.headers = stored
        if message.body and (self.paths or message.content_type in (URLENCODED, MULTIPART)):
            self._clean_body(message)

    def _clean_body(self, message: RecordedMessage) -> None:
        """Replace what paths match, and secret fields of forms. A body that cannot be read is not written at all."""
        cleaner = self._cleaner(message)
        if cleaner is None:
            return
        try:
            if message.why:
                raise ValueError("it is not whole")
            body, count = cleaner(decoded(message))
        except (ValueError, RecursionError) as error:
            message.why = f"left out, since --redact could not look into it: {error!s:.80}"
            message.body = b""
            return
        if count:
            message.body = body
            message.headers = [pair for pair in message.headers if pair[0].lower() != "content-encoding"]
            message.withheld += [path.text for path in self.paths] or ["fields of the form"]
            message.why = "redacted"

    def _cleaner(self, message: RecordedMessage) -> Callable[[bytes], tuple[bytes, int]] | None:
        """The function that cleans a body of this type; None if no rule can match in it."""
        kind = message.content_type
        if kind == URLENCODED:
            return lambda body: clean_urlencoded(body, self._clean_field)
        if kind == MULTIPART:
            return lambda body: clean_multipart(body, message.header("content-type"), self._clean_field)
        if kind == EVENTS:
            return lambda body: self._lines(body, b"data:")
        if kind in JSON_LINES:
            return lambda body: self._lines(body, b"")
        is_json = kind.endswith(("/json", "+json")) or message.body.lstrip()[:1] in (b"{", b"[")
        # An encoded body may be JSON, whatever its type says: its first byte cannot tell.
        if is_json or not kind or message.header("content-encoding"):
            return self._whole
        return None

    def _clean_field(self, name: str, value: bytes) -> bytes | None:
        """The cleaned value of a form's field, or None. Paths match a form like a JSON object, and JSON in a field."""
        named = name.lower() in self.headers or any(path.matches((name,)) for path in self.paths)
        if named or is_secret(name) or any(secret.encode() in value for secret in self.secrets):
            return SUBSTITUTE.encode()
        if not self.paths or value.lstrip()[:1] not in (b"{", b"["):
            return None
        inside, count = replaced({name: json.loads(value)}, self.paths, lambda old: SUBSTITUTE)
        cleaned, more = self._whole(json.dumps(inside[name]).encode())
        return cleaned if count or more else None

    def _whole(self, body: bytes) -> tuple[bytes, int]:
        value, count = replaced(json.loads(body), self.paths, lambda old: SUBSTITUTE)
        return (json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"), count) if count else (body, 0)

    def _lines(self, body: bytes, start: bytes) -> tuple[bytes, int]:
        """Clean each line that begins with `start` and has JSON. Other lines, such as `[DONE]`, stay as they are."""
        total = 0
        lines = []
        for text in body.split(b"\n"):
            content = text.removeprefix(start).strip()
            if text.startswith(start) and content[:1] in (b"{", b"["):
                if content == b"[DONE]":
                    lines.append(text)
                    continue
                cleaned, count = self._whole(content)
                total += count
                text = (start + b" " + cleaned if start else cleaned) if count else text
            lines.append(text)
        return b"\n".join(lines), total


def without_secrets(target: str, further: Iterable[str] = ()) -> tuple[str, list[str]]:
    """An address without the values of secret parameters, and of those named in `further`; and the names of these."""
    path, mark, query = target.partition("?")
    if not mark:
        return target, []
    query, hash_mark, fragment = query.partition("#")
    names, parts = [], []
    for part in query.split("&"):
        name, equals, _ = part.partition("=")
        if equals and (is_secret(name) or name.lower() in further):
            names.append(name)
            part = f"{name}={SUBSTITUTE}"
        parts.append(part)
    return f"{path}?{'&'.join(parts)}{hash_mark}{fragment}", names


def decoded(message: RecordedMessage) -> bytes:
    """The body without its Content-Encoding. Raises ValueError for an unknown encoding, and for too many bytes."""
    coding = message.header("content-encoding").strip().lower()
    if coding in ("", "identity"):
        return message.body
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise ValueError(f"its encoding is {coding:.20}")
    unpacker: Any = zlib.decompressobj(47)
    try:
        body: bytes = unpacker.decompress(message.body, LARGEST_DECODED)
    except zlib.error:
        raise ValueError("it is not in the encoding that it names") from None
    if unpacker.unconsumed_tail:
        raise ValueError("it is too large")
    return body
