"""The expressions of templates: a tokeniser, a parser by precedence, the meaning of signs, functions and filters."""

from __future__ import annotations

import html
import re
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence

from panglot_worker.graphs.errors import GraphError, MissingVariable, near
from panglot_worker.graphs.values import NOTHING, divided, fitting, joined, shown

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+)|(?P<text>\"[^\"]*\"|'[^']*'|`[^`]*`)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>==|!=|<=|>=|&&|\|\||[-+*/%<>=~|!()\[\]{},:.]))"
)
LITERALS = {"true": True, "yes": True, "false": False, "no": False, "null": None, "nil": None}
LEVELS = (("||",), ("&&",), ("==", "!=", "<", "<=", ">", ">="), ("~",), ("+", "-"), ("*", "/", "%"))
REFUSED = ("file", "env", "script", "command")
MOST_ITEMS = 100_000


class VariableScope:
    """The variables of a template. Inner scopes see outer ones; an assignment reaches the scope that has the name."""

    def __init__(self, names: Dict[str, Any], outer: Optional["VariableScope"] = None) -> None:
        self.names = names
        self.outer = outer

    def inner(self) -> "VariableScope":
        return VariableScope({}, self)

    def declare(self, names: Sequence[str], item: Any) -> None:
        if len(names) == 1:
            self.names[names[0]] = item
            return
        if not isinstance(item, (list, tuple)) or len(item) != len(names):
            raise GraphError("%d names for %s" % (len(names), shown(item)))
        self.names.update(zip(names, item))

    def find(self, name: str) -> Any:
        """The value of a variable, of the innermost scope that has it. Raises MissingVariable."""
        scope: Optional[VariableScope] = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        fix = near(name, self.known()) or "give it with --dynamic FILE"
        raise MissingVariable("there is no variable '%s'" % name, fix=fix)

    def known(self) -> List[str]:
        return [*self.names, *(self.outer.known() if self.outer is not None else [])]

    def assign(self, name: str, value: Any) -> None:
        """Give a variable a value, in the innermost scope that has it; a new one is declared here."""
        scope: Optional[VariableScope] = self
        while scope is not None:
            if name in scope.names:
                scope.names[name] = value
                return
            scope = scope.outer
        self.names[name] = value


class Expression(NamedTuple):
    """A parsed expression. `value` computes it in a scope; raises GraphError."""

    value: Callable[[VariableScope], Any]

    def items(self, scope: VariableScope) -> Iterable[Any]:
        """The items of a loop over the expression's value. Raises GraphError."""
        container = self.value(scope)
        if isinstance(container, dict):
            return list(container.items())
        if isinstance(container, (list, range)):
            return container
        raise GraphError("for needs an array or a map, not %s" % shown(container))


def parse(code: str) -> Expression:
    """Parse the code between the braces of a template. Raises GraphError."""
    parser = _ExpressionParser(code)
    value = parser.assignment()
    parser.expect_end()
    return Expression(value)


Get = Callable[[VariableScope], Any]


class _ExpressionParser:
    def __init__(self, code: str) -> None:
        self.tokens: List[Any] = []
        at = 0
        code = code.strip()
        while at < len(code):
            match = _TOKEN.match(code, at)
            if match is None:
                raise GraphError("'%s' cannot be read" % code[at : at + 20].strip())
            self.tokens.append((match.lastgroup, match.group(match.lastgroup or 0)))
            at = match.end()
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def kind(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def take(self, sign: str) -> bool:
        if self.kind() == "sign" and self.peek() == sign:
            self.at += 1
            return True
        return False

    def expect(self, sign: str) -> None:
        if not self.take(sign):
            raise GraphError("'%s' is expected before '%s'" % (sign, self.peek() or "the end"))

    def expect_end(self) -> None:
        if self.at < len(self.tokens):
            raise GraphError("'%s' is not expected" % self.peek())

    def assignment(self) -> Get:
        if self.kind() == "name" and self.at + 1 < len(self.tokens) and self.tokens[self.at + 1] == ("sign", "="):
            name = self.peek()
            self.at += 2
            right = self.assignment()

            def assign(scope: VariableScope) -> Any:
                scope.assign(name, right(scope))
                return NOTHING

            return assign
        return self.level(0)

    def level(self, depth: int) -> Get:
        if depth == len(LEVELS):
            return self.filtered()
        left = self.level(depth + 1)
        while self.kind() == "sign" and self.peek() in LEVELS[depth]:
            sign = self.peek()
            self.at += 1
            left = _binary(sign, left, self.level(depth + 1))
        return left

    def filtered(self) -> Get:
        value = self.unary()
        while self.take("|"):
            name = self.peek()
            if self.kind() != "name" or name not in FILTERS:
                raise GraphError("there is no filter '%s'" % name, fix=near(name, FILTERS))
            self.at += 1
            arguments = self.arguments("(", ")") if self.take("(") else []
            value = _filtered(name, value, arguments)
        return value

    def unary(self) -> Get:
        if self.take("!"):
            inner = self.unary()
            return lambda scope: not _boolean(inner(scope), "!")
        if self.take("-"):
            number = self.unary()
            return lambda scope: -_number(number(scope), "-")
        return self.dotted()

    def dotted(self) -> Get:
        value = self.primary()
        while True:
            if self.take("."):
                key: Get = _constant(self.peek())
                self.at += 1
            elif self.take("["):
                key = self.level(0)
                self.expect("]")
            else:
                return value
            value = _item(value, key)

    def primary(self) -> Get:
        kind, token = self.kind(), self.peek()
        self.at += 1
        if kind == "number":
            return _constant(fitting(int(token[:20])))
        if kind == "text":
            return _constant(token[1:-1])
        if kind == "name":
            if self.take("("):
                return _call(token, self.arguments("(", ")"))
            return _constant(LITERALS[token]) if token in LITERALS else lambda scope: scope.find(token)
        if token == "(":
            inner = self.assignment()
            self.expect(")")
            return inner
        if token == "[":
            items = self.arguments("[", "]")
            return lambda scope: [item(scope) for item in items]
        if token == "{":
            return self.map()
        raise GraphError("a value is expected, not '%s'" % (token or "the end"))

    def arguments(self, opening: str, closing: str) -> List[Get]:
        arguments: List[Get] = []
        while not self.take(closing):
            if arguments:
                self.expect(",")
                if self.take(closing):
                    break
            arguments.append(self.level(0))
        return arguments

    def map(self) -> Get:
        pairs: List[Any] = []
        while not self.take("}"):
            if pairs:
                self.expect(",")
            key = self.peek().strip("\"'`")
            self.at += 1
            self.expect(":")
            pairs.append((key, self.level(0)))
        return lambda scope: {key: value(scope) for key, value in pairs}


def _constant(value: Any) -> Get:
    return lambda scope: value


def _item(container: Get, key: Get) -> Get:
    def get(scope: VariableScope) -> Any:
        inside, name = container(scope), key(scope)
        if isinstance(inside, dict) and str(name) in inside:
            return inside[str(name)]
        if isinstance(inside, list) and shown(name).isdecimal() and int(shown(name)[:20]) < len(inside):
            return inside[int(shown(name))]
        raise GraphError("%s has no '%s'" % (shown(inside), shown(name)))

    return get


def _call(name: str, arguments: List[Get]) -> Get:
    if name in REFUSED:
        problem = "%s() is refused: a graph file runs no program and reads no file" % name
        raise GraphError(problem, fix="give the value with --dynamic FILE")
    if name != "range":
        raise GraphError("there is no function '%s'" % name, fix=near(name, ["range"]))

    def count(scope: VariableScope) -> Any:
        numbers = [_number(argument(scope), "range") for argument in arguments]
        if not 1 <= len(numbers) <= 3 or (len(numbers) == 3 and numbers[2] == 0):
            raise GraphError("range takes an end, a start and an end, or a start, an end and a step")
        counted = range(*numbers)
        # len() cannot count beyond 63 bit.
        if counted[MOST_ITEMS : MOST_ITEMS + 1]:
            raise GraphError("a range of more than %d is too long" % MOST_ITEMS)
        return counted

    return count


def _number(value: Any, what: str) -> int:
    if type(value) is not int:
        raise GraphError("%s needs whole numbers, not %s" % (what, shown(value) or "nothing"))
    return value


def _boolean(value: Any, what: str) -> bool:
    if not isinstance(value, bool):
        raise GraphError("%s needs true or false, not %s" % (what, shown(value) or "nothing"))
    return value


def _binary(sign: str, left: Get, right: Get) -> Get:
    if sign == "||":
        return lambda scope: _boolean(left(scope), sign) or _boolean(right(scope), sign)
    if sign == "&&":
        return lambda scope: _boolean(left(scope), sign) and _boolean(right(scope), sign)
    if sign == "~":
        return lambda scope: joined([shown(left(scope)), shown(right(scope))])
    if sign in ("==", "!="):
        return lambda scope: _same(left(scope), right(scope)) is (sign == "==")

    def compute(scope: VariableScope) -> Any:
        a, b = left(scope), right(scope)
        if sign == "+" and isinstance(a, str) and isinstance(b, str):
            return joined([a, b])
        a, b = _number(a, sign), _number(b, sign)
        if sign in "/%" and b == 0:
            raise GraphError("division by zero")
        return fitting(ARITHMETIC[sign](a, b))

    return compute


def _same(a: Any, b: Any) -> bool:
    for value in (a, b):
        # Raises for a value that is too large: lists of lists double with every step, and comparing would not end.
        shown(value)
    return bool(a == b)


ARITHMETIC: Dict[str, Callable[[int, int], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": divided,
    "%": lambda a, b: a % b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _filtered(name: str, value: Get, arguments: List[Get]) -> Get:
    def apply(scope: VariableScope) -> Any:
        given = [argument(scope) for argument in arguments]
        try:
            subject = value(scope)
        except MissingVariable:
            if name == "default":
                return given[0] if given else None
            if name == "exists":
                return False
            raise
        try:
            return FILTERS[name](subject, *given)
        except (TypeError, ValueError, IndexError, KeyError, AttributeError):
            words = ", ".join(shown(argument) for argument in given)
            raise GraphError("%s(%s) does not fit %s" % (name, words, shown(subject) or "nothing")) from None

    return apply


def _require(value: Any) -> Any:
    if value is None:
        raise GraphError("a required value is null")
    return value


FILTERS: Dict[str, Callable[..., Any]] = {
    "require": _require,
    "default": lambda value, other=None: other if value is None else value,
    "length": len,
    "exists": lambda value: value is not None,
    "lower": lambda value: value.lower(),
    "upper": lambda value: value.upper(),
    "trim": lambda value: value.strip(),
    "split": lambda value, mark: value.split(mark),
    "index": lambda value, number: value[number],
    "join": lambda value, mark="": joined([shown(item) for item in value], mark),
    "string": shown,
    "key": lambda value, name: value[name],
    "escape_html": lambda value: html.escape(shown(value)),
    "e": lambda value: html.escape(shown(value)),
    "replace": lambda value, old, new: joined(value.split(old), new),
    "truncate": lambda value, count: value[:count],
}
