"""The template layer of graph files: text with `{{ expression }}`, `{% block %}` and `{# comment #}`.

It looks like Jinja, with differences: an assignment is an expression, blocks end with `{% end for %}`, and functions
that would run programs or read files are refused.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, NamedTuple, Tuple, Union

from panglot_worker.graphs.errors import GraphError
from panglot_worker.graphs.expressions import Expression, VariableScope, parse
from panglot_worker.graphs.values import MOST_TEXT, shown

_OPENING = re.compile(r"\{\{-?|\{%-?|\{#-?")
_CLOSING = {"{{": "}}", "{%": "%}", "{#": "#}"}
MOST_ROUNDS = 100_000
"""How often all loops of a template together may go round."""


class Rendered(NamedTuple):
    """The result of a template."""

    text: str
    lines: List[int]
    """For every line of the text, the line of the template it came from."""


class _Text(NamedTuple):
    text: str
    line: int


class _Output(NamedTuple):
    expression: Expression
    line: int


class _For(NamedTuple):
    names: List[str]
    expression: Expression
    body: List[Any]
    line: int


class _If(NamedTuple):
    branches: List[Tuple[Any, List[Any]]]
    line: int


class _Scoped(NamedTuple):
    body: List[Any]
    line: int


Element = Union[_Text, _Output, _For, _If, _Scoped]


def render(text: str, variables: Dict[str, Any], file: str = "") -> Rendered:
    """The text a template stands for. Raises GraphError with the line."""
    if _OPENING.search(text) is None:
        return Rendered(text, [])
    elements = _TemplateParser(text, file).parse()
    printer = _Printer(file)
    printer.run(elements, VariableScope(dict(variables)))
    return Rendered(*printer.finish())


class _Tag(NamedTuple):
    kind: str
    code: str
    line: int


class _TemplateParser:
    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.pieces = list(self._split(text))
        self.at = 0

    def error(self, problem: str, line: int, fix: str = "") -> GraphError:
        return GraphError("template: " + problem, self.file, line, fix)

    def _split(self, text: str) -> "List[Union[_Text, _Tag]]":
        pieces: List[Union[_Text, _Tag]] = []
        at, line, trim = 0, 1, False
        while True:
            opening = _OPENING.search(text, at)
            plain = text[at : opening.start() if opening else len(text)]
            start = line
            line += plain.count("\n")
            if trim:
                stripped = plain.lstrip()
                start += plain[: len(plain) - len(stripped)].count("\n")
                plain = stripped
            if opening and opening.group().endswith("-"):
                plain = plain.rstrip()
            if plain:
                pieces.append(_Text(plain, start))
            if opening is None:
                return pieces
            kind = opening.group()[:2]
            end = self._end(text, opening.end(), _CLOSING[kind])
            if end < 0:
                raise self.error("'%s' is never closed" % kind, line, "close it with %s" % _CLOSING[kind])
            code = text[opening.end() : end]
            trim = code.endswith("-")
            if kind != "{#":
                pieces.append(_Tag(kind, code[:-1] if trim else code, line))
            line += code.count("\n")
            at = end + 2

    @staticmethod
    def _end(text: str, start: int, closing: str) -> int:
        """Where the tag ends. Closing marks in quotes, or of maps in the tag, do not count."""
        quote, depth, at = "", 0, start
        while at < len(text):
            char = text[at]
            if quote:
                quote = "" if char == quote else quote
            elif closing != "#}" and char in "\"'`":
                quote = char
            elif depth == 0 and text.startswith(closing, at):
                return at
            elif char == "{" and closing == "}}":
                depth += 1
            elif char == "}" and closing == "}}":
                depth -= 1
            at += 1
        return -1

    def parse(self) -> List[Element]:
        elements, ended = self._body()
        if ended is not None:
            raise self.error("'{%% %s %%}' ends nothing" % " ".join(ended.code.split()), ended.line)
        return elements

    def _body(self) -> "Tuple[List[Element], Any]":
        """The elements up to a tag that ends a block, and that tag; None at the end of the text."""
        elements: List[Element] = []
        while self.at < len(self.pieces):
            piece = self.pieces[self.at]
            self.at += 1
            if isinstance(piece, _Text):
                elements.append(piece)
            elif piece.kind == "{{":
                elements.append(_Output(self._expression(piece.code, piece.line), piece.line))
            else:
                words = piece.code.split()
                if words and words[0] in ("end", "else", "endfor", "endif", "endscope"):
                    return elements, piece
                elements.append(self._block(piece, words))
        return elements, None

    def _block(self, tag: _Tag, words: List[str]) -> Element:
        word = words[0] if words else ""
        rest = tag.code.strip()[len(word) :]
        if word == "for":
            names, separator, source = rest.partition(" in ")
            if not separator:
                raise self.error("for needs 'in'", tag.line, "{% for x in range(3) %}")
            expression = self._expression(source, tag.line)
            body = self._closed("for", tag)
            return _For([name.strip() for name in names.split(",")], expression, body, tag.line)
        if word == "if":
            return self._if(rest, tag)
        if word == "scope":
            return _Scoped(self._closed("scope", tag), tag.line)
        raise self.error("'%s' is no block" % word, tag.line, "there are for, if and scope")

    def _closed(self, word: str, tag: _Tag) -> List[Element]:
        body, ended = self._body()
        self._check_end(word, tag, ended)
        return body

    def _check_end(self, word: str, tag: _Tag, ended: Any) -> None:
        said = "".join(ended.code.split()) if ended is not None else ""
        if said not in ("end" + word, "end"):
            raise self.error(
                "the %s of line %d is not ended" % (word, tag.line), ended.line if ended else tag.line,
                "write {%% end %s %%}" % word,
            )  # fmt: skip

    def _if(self, condition: str, tag: _Tag) -> _If:
        branches: List[Tuple[Any, List[Any]]] = []
        test: Any = self._expression(condition, tag.line)
        while True:
            body, ended = self._body()
            branches.append((test, body))
            words = ended.code.split() if ended is not None else []
            if words[:1] != ["else"]:
                self._check_end("if", tag, ended)
                return _If(branches, tag.line)
            rest = ended.code.strip()[4:].strip()
            if rest.startswith("if"):
                test = self._expression(rest[2:], ended.line)
            elif not rest:
                test = None
            else:
                raise self.error("'else %s'" % rest, ended.line, "write {% else %} or {% else if ... %}")

    def _expression(self, code: str, line: int) -> Expression:
        try:
            return parse(code)
        except GraphError as error:
            raise self.error(error.problem, line, error.fix) from None


class _Printer:
    """Runs the elements, and notes the line of the template for each piece of text."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.pieces: List[Tuple[str, int, bool]] = []
        self.size = 0
        self.rounds = 0

    def put(self, text: str, line: int, moves: bool) -> None:
        """Write text from a line of the template. The template's own text (`moves`) goes on to the lines below it."""
        self.size += len(text)
        if self.size > MOST_TEXT:
            raise GraphError("template: it grows beyond %d characters" % MOST_TEXT, self.file, line)
        self.pieces.append((text, line, moves))

    def run(self, elements: List[Element], scope: VariableScope) -> None:
        for element in elements:
            try:
                self._run(element, scope)
            except GraphError as error:
                if error.line:
                    raise
                # An expression does not know its line.
                raise type(error)("template: %s" % error.problem, self.file, element.line, error.fix) from None

    def _run(self, element: Element, scope: VariableScope) -> None:
        if isinstance(element, _Text):
            self.put(element.text, element.line, True)
        elif isinstance(element, _Output):
            self.put(shown(element.expression.value(scope)), element.line, False)
        elif isinstance(element, _Scoped):
            self.run(element.body, scope.inner())
        elif isinstance(element, _If):
            for test, body in element.branches:
                if test is None or truth(test.value(scope)):
                    self.run(body, scope.inner())
                    return
        else:
            for item in element.expression.items(scope):
                self.rounds += 1
                if self.rounds > MOST_ROUNDS:
                    raise GraphError("its loops go round more than %d times" % MOST_ROUNDS)
                inner = scope.inner()
                inner.declare(element.names, item)
                self.run(element.body, inner)

    def finish(self) -> Tuple[str, List[int]]:
        lines, fresh = [1], True
        for text, line, moves in self.pieces:
            if text and fresh:
                lines[-1] = line
            lines += [line + count if moves else line for count in range(1, text.count("\n") + 1)]
            fresh = text.endswith("\n") if text else fresh
        return "".join(text for text, _, _ in self.pieces), lines


def truth(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise GraphError("%r is neither true nor false" % (value,))
