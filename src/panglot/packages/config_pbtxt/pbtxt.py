"""Reads the text form of protocol buffers, as in Triton's config.pbtxt. Anything unknown is an error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from panglot.errors import StartError
from panglot.packages.source import unreadable
from panglot.terminal.text import brief
from panglot_worker.files import package_files
from panglot_worker.files.package_files import UnreadableFile

TOKEN = re.compile(
    r"""(?P<space>[ \t\r\f\v]+|\#[^\n]*)
    |(?P<line>\n)
    |(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<number>-?(?:0[xX][0-9a-fA-F]+|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?f?)(?![\w.]))
    |(?P<word>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<sign>[{}<>\[\]:,;-])""",
    re.VERBOSE,
)
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}
CLOSING = {"{": "}", "<": ">"}
DEEPEST = 50
LARGEST_NUMBER = 1 << 64
"""No field of a message has a larger value."""
LONGEST_NUMBER = 100


class Word(str):
    """A bare word: true, false, or a name of an enumeration."""


Value = "int | float | str | Message"


class Message(dict[str, list["int | float | str | Message"]]):
    """Fields by name, each with all its values, and the line it began on."""

    line = 0

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[str, int] = {}
        """The line of each field: of its last value, where it has several."""

    def one(self, name: str, default: int | float | str | Message = "") -> int | float | str | Message:
        """The last value of a field, as protocol buffers have it."""
        return self[name][-1] if self.get(name) else default

    def messages(self, name: str) -> list[Message]:
        return [value for value in self.get(name, []) if isinstance(value, Message)]


class TextToken(NamedTuple):
    kind: str
    text: str
    line: int


def read(path: Path) -> Message:
    """The message in a file. Raises StartError, naming the line, for a file that has none."""
    try:
        text = package_files.text(path)
    except OSError as error:
        raise StartError(f"cannot be read: {error.strerror}", file=str(path)) from None
    except UnreadableFile as error:
        raise unreadable(error) from None
    return TextReader(text, str(path)).whole()


class TextReader:
    """One pass over the tokens of a text."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.tokens = list(self._tokens(text))
        self.position = 0

    def whole(self) -> Message:
        return self._fields("", 0)

    def _tokens(self, text: str) -> Iterator[TextToken]:
        start, line = 0, 1
        while start < len(text):
            match = TOKEN.match(text, start)
            if match is None:
                raise self._error(f"unexpected {text[start : start + 10]!r}", line)
            if match.lastgroup == "line":
                line += 1
            elif match.lastgroup != "space":
                yield TextToken(str(match.lastgroup), match[0], line)
            start = match.end()
        yield TextToken("end", "", line)

    def _error(self, problem: str, line: int) -> StartError:
        return StartError(problem, file=self.file, line=line)

    def _next(self) -> TextToken:
        token = self.tokens[self.position]
        self.position += token.kind != "end"
        return token

    def _peek(self, *texts: str) -> bool:
        token = self.tokens[self.position]
        return token.kind == "sign" and token.text in texts

    def _fields(self, closing: str, depth: int) -> Message:
        """The fields up to a closing bracket, or to the end of the text."""
        message = Message()
        message.line = self.tokens[self.position].line
        if depth > DEEPEST:
            raise self._error("nested too deeply", message.line)
        while True:
            token = self._next()
            if token.kind == "end" and closing:
                raise self._error(f"'{closing}' is missing", token.line)
            if token.kind == "end" or (token.kind == "sign" and token.text == closing):
                return message
            if token.kind != "word":
                raise self._error(f"expected the name of a field, not {brief(token.text, 80)!r}", token.line)
            message.lines[token.text] = token.line
            message.setdefault(token.text, []).extend(self._values(token, depth))
            if self._peek(",", ";"):
                self._next()

    def _values(self, name: TextToken, depth: int) -> list[int | float | str | Message]:
        """What stands behind the name of a field: a value, a message, or a list of either."""
        colon = self._peek(":")
        if colon:
            self._next()
        elif not self._peek("{", "<", "["):
            raise self._error(f"expected ':' behind {brief(name.text, 80)}", name.line)
        if not self._peek("["):
            return [self._value(depth)]
        self._next()
        values: list[int | float | str | Message] = []
        while not self._peek("]"):
            values.append(self._value(depth))
            if not self._peek(","):
                break
            self._next()
        if not self._peek("]"):
            raise self._error(f"']' is missing behind {brief(name.text, 80)}", self.tokens[self.position].line)
        self._next()
        return values

    def _value(self, depth: int) -> int | float | str | Message:
        token = self._next()
        if token.kind == "sign" and token.text in CLOSING:
            return self._fields(CLOSING[token.text], depth + 1)
        if token.kind == "number":
            return self._number(token)
        if token.kind == "word":
            return Word(token.text)
        if token.kind == "text":
            words = [token.text]
            while self.tokens[self.position].kind == "text":
                words.append(self._next().text)
            return "".join(map(_unquoted, words))
        raise self._error(f"expected a value, not {brief(token.text, 80) or 'the end'!r}", token.line)

    def _number(self, token: TextToken) -> int | float:
        """The number in a token. Raises StartError for a number that is too large for every field."""
        # The length first: Python takes long for the digits of a very long number, and refuses some.
        number = _number(token.text) if len(token.text) <= LONGEST_NUMBER else LARGEST_NUMBER
        if isinstance(number, int) and abs(number) >= LARGEST_NUMBER:
            shown = brief(token.text, 40)
            raise self._error(f"the number {shown} is too large: whole numbers have up to 64 bits", token.line)
        return number


def _number(text: str) -> int | float:
    if text.lower().startswith(("0x", "-0x")):
        return int(text, 16)
    return int(text) if text.lstrip("-").isdecimal() else float(text.rstrip("f"))


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: ESCAPES.get(match[1], match[1]), text[1:-1])
