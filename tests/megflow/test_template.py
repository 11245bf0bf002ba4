"""The template layer of graph files."""

from __future__ import annotations

import pytest

from panglot_worker.graphs import template
from panglot_worker.graphs.errors import GraphError

VARIABLES = {"n": 3, "name": "Cat", "list": [1, 2], "table": {"a": 1}, "flag": True, "nothing": None}

RENDERED = {
    "plain text": "plain text",
    "a = [{ b = { c = 1 }}]": "a = [{ b = { c = 1 }}]",
    "{{ n }}": "3",
    "{{ n + 1 * 2 }} {{ (n + 1) * 2 }} {{ 7 / 2 }} {{ 7 % 2 }} {{ n - 5 }}": "5 8 3 1 -2",
    "{{ name ~ '-' ~ n }}": "Cat-3",
    "{{ \"double\" }}{{ 'single' }}{{ `back` }}": "doublesingleback",
    "{{ true }} {{ yes }} {{ false }} {{ no }}[{{ null }}{{ nil }}]": "true true false false[]",
    "{{ n == 3 }} {{ n != 3 }} {{ n < 4 && n >= 3 }} {{ n > 4 || n <= 3 }} {{ !flag }}": "true false true true false",
    "{{ X = 5 -}}\n\n{{ X }}": "5",
    "{{ X = 5 }}{{ X = X + 1 }}{{ X }}": "6",
    "{% for i in range(3) %}{{ i }},{% end for %}": "0,1,2,",
    "{% for i in range(1, 3) %}{{ i }}{% end for %}{% for i in range(5, 0, -2) %}{{ i }}{% end for %}": "12531",
    "{% for i in list %}{{ i }}{% endfor %}": "12",
    "{% for k, v in table %}{{ k }}={{ v }}{% end for %}": "a=1",
    "{% if n == 1 %}a{% else if n == 3 %}b{% else %}c{% end if %}": "b",
    "{% if false %}a{% else %}c{% end if %}": "c",
    "{% if false %}a{% end if %}": "",
    "{{ X = 1 }}{% scope %}{{ Y = 2 }}{{ X = 3 }}{% end scope %}{{ X }}": "3",
    "a {# not {{ here #} b": "a  b",
    "a \n{{- n -}}\n b": "a3b",
    "{{ [1, n] }} {{ {a: 1} | key('a') }} {{ list[1] }} {{ table.a }}": "[1, 3] 1 2 1",
    "{{ name | lower }}{{ name | upper }}{{ ' x ' | trim }}": "catCATx",
    "{{ 'a,b' | split(',') | index(1) }}{{ list | join('+') }}{{ list | length }}": "b1+22",
    "{{ missing | default(7) }}{{ missing | exists }}{{ n | exists }}": "7falsetrue",
    "{{ n | require | string }}{{ 'abc' | truncate(2) }}{{ 'aXa' | replace('X', '-') }}": "3aba-a",
    "{{ '<' | e }}{{ '<' | escape_html }}": "&lt;&lt;",
}


@pytest.mark.parametrize("text", RENDERED, ids=range(len(RENDERED)))
def test_rendered(text: str) -> None:
    assert template.render(text, VARIABLES).text == RENDERED[text]


REFUSED = {
    "{{ command('ls') }}": (1, "command() is refused"),
    "\n{{ script('x') }}": (2, "script() is refused"),
    "{{ env('HOME') }}{{ file('x') }}": (1, "env() is refused"),
    "a\nb {{ nmae }}": (2, "no variable 'nmae'"),
    "{{ 1 + }}": (1, "a value is expected"),
    "{{ n": (1, "never closed"),
    "{% for i in 3 %}{% end for %}": (1, "needs an array"),
    "\n{% for i in list %}": (2, "is not ended"),
    "{% if n %}{% end if %}": (1, "neither true nor false"),
    "{% end for %}": (1, "ends nothing"),
    "{% while true %}": (1, "no block"),
    "{{ n | uper }}": (1, "did you mean 'upper'"),
    "{{ 1 / 0 }}": (1, "division by zero"),
    "{{ name + 1 }}": (1, "whole numbers"),
    "{{ range(1, 2, 0) }}": (1, "range takes"),
    "{% for i in range(99999) %}" + "12345678" * 8 + "{% end for %}": (1, "grows beyond"),
    "{% for i in range(99999) %}{% for j in range(99999) %}1{% end for %}{% end for %}": (1, "go round more than"),
    "{{ nothing | require }}": (1, "is null"),
    "{{ list | index(9) }}": (1, "does not fit"),
}


@pytest.mark.parametrize("text", REFUSED, ids=range(len(REFUSED)))
def test_refused_with_its_line(text: str) -> None:
    line, words = REFUSED[text]
    with pytest.raises(GraphError) as caught:
        template.render(text, VARIABLES, "graph.toml")
    assert words in str(caught.value)
    assert (caught.value.file, caught.value.line) == ("graph.toml", line)


def test_lines_of_the_text_are_traced_to_the_template() -> None:
    text = "one\n{{ N = 2 -}}\n{% for i in range(N) %}\nx{{ i }}\n{% end for %}\nlast"
    rendered = template.render(text, {})
    lines = dict(zip(rendered.text.split("\n"), rendered.lines, strict=True))
    assert (lines["one"], lines["x0"], lines["x1"], lines["last"]) == (1, 4, 4, 6)
