"""Tells figures, right and wrong ones, and prints what each is refused with."""

from typing import Any

from cog import BaseRunner, current_scope

TOLD: "list[tuple[Any, ...]]" = [
    ("a.b", 1), ("a.c", 2.5), ("text", "x"), ("yes", True), ("list", [1, "x", None]), ("dict", {"a": [1.5]}),
    ("count", 2, "incr"), ("count", 3, "increment"), ("many", 1, "append"), ("many", 2, "append"),
    ("one", 1), ("one", 2, "append"), ("none", None), ("nan", float("nan")), ("o", object()), ("inner", [object()]),
    ("", 1), (".a", 1), ("a.", 1), ("a..b", 1), ("a.b.c.d.e", 1), ("x" * 200, 1), ("a b", 1), ("_a", 1), ("a_", 1),
    ("a__b", 1), ("1a", 1), ("a-b", 1), ("predict_time", 1), ("cog.x", 1), ("m", 1, "other"), ("s", "x", "incr"),
    ("b", True, "incr"), ("text", 1), ("count", 1.5, "incr"), ("yes", 1, "append"), ("list", 2, "append"),
]  # fmt: skip


class Runner(BaseRunner):
    def run(self, prompt: str = "x") -> str:
        for name, value, *mode in TOLD:
            try:
                self.record_metric(name, value, *mode)
            except (TypeError, ValueError) as error:
                print("%s %r: %s: %s" % (name, mode, type(error).__name__, error))
        figures = current_scope().metrics
        figures["item"] = 1
        figures["gone"] = 1
        del figures["gone"]
        figures.record("typed", 1)
        figures.delete("typed")
        figures.record("typed", "now a text")
        return prompt
