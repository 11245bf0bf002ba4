"""How a script's driver uses its engine, read from the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from panglot.packages.source import Function, functions

ENGINE = "InferenceEngine"
DRIVERS = ("infer_main", "main", "infer", "predict", "run")
STEPS = ("preprocess", "run", "postprocess")
BUILDING = ("__init__", "load_predictor")
FILLING = ("append", "extend", "add", "insert", "update", "setdefault")
LISTING = ("listdir", "walk", "scandir", "glob", "iglob")


@dataclass
class Driver:
    """The function that builds an engine and runs one input through it."""

    name: str
    node: Function
    engine: str = ""
    """The variable that holds the engine."""
    arguments: str = ""
    """The parameter that holds the script's arguments; empty when it takes none."""
    assigned: list[tuple[list[str], ast.expr | None]] = field(default_factory=list)
    """Names and value of each assignment, in order. An assignment that changes a value in place has no value here."""
    broken: str = ""
    """Why the steps cannot be called directly; empty when they can."""
    input: ast.expr | None = None
    """The argument of preprocess."""
    names: tuple[str, ...] = ()
    """The names of the result's parts."""


def find(tree: ast.Module) -> Driver | None:
    """The driver: of the functions that build an engine, the one with a usual name, else the first one."""
    builders = [node for node in functions(tree.body).values() if builds_engine(node)]
    if not builders:
        return None
    usual = [node for name in DRIVERS for node in builders if node.name == name]
    return read((usual or builders)[0])


def builds_engine(node: ast.AST) -> bool:
    return any(_is_engine(inner) for inner in ast.walk(node))


def _is_engine(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == ENGINE


def read(node: Function) -> Driver:
    """The driver with its steps, and the reason if a step changes the result of the step before."""
    driver = Driver(node.name, node)
    parameters = [*node.args.posonlyargs, *node.args.args]
    driver.arguments = parameters[0].arg if parameters else ""
    looped = _follow(driver, node.body, False)
    driver.broken = _broken(driver, looped)
    return driver


def _follow(driver: Driver, body: list[ast.stmt], loop: bool) -> bool:
    """Note the assignments of a body in order. Returns whether a step is called in a loop."""
    looped = False
    for statement in body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names, value = _names(targets[0]), statement.value
            if value is not None and _is_engine(value) and len(names) == 1:
                driver.engine = names[0]
            changed = isinstance(targets[0], ast.Subscript | ast.Attribute)
            driver.assigned.append(([_base(targets[0])] if changed else names, None if changed else value))
        elif isinstance(statement, ast.AugAssign):
            driver.assigned.append(([_base(statement.target)], None))
        inside = loop or isinstance(statement, ast.For | ast.While | ast.AsyncFor)
        if inside and any(step(driver, call) for call in ast.walk(statement)):
            looped = True
        for inner in ("body", "orelse", "finalbody"):
            looped |= _follow(driver, getattr(statement, inner, []), inside)
    return looped


def _names(target: ast.expr) -> list[str]:
    if isinstance(target, ast.Name):
        return [target.id]
    if isinstance(target, ast.Tuple | ast.List):
        return [item.id if isinstance(item, ast.Name) else "" for item in target.elts]
    return []


def _base(node: ast.expr) -> str:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def step(driver: Driver, node: ast.AST | None) -> str:
    """The step of the engine that a node calls; empty for all other nodes."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in STEPS:
        owner = node.func.value
        if isinstance(owner, ast.Name) and driver.engine and owner.id == driver.engine:
            return node.func.attr
        if _is_engine(owner):
            return node.func.attr
    return ""


def _calls(driver: Driver, name: str) -> list[ast.Call]:
    return [node for node in ast.walk(driver.node) if isinstance(node, ast.Call) and step(driver, node) == name]


def _broken(driver: Driver, looped: bool) -> str:
    """Why the steps cannot be called directly; empty where they can. Sets `input` and `names` too."""
    # From the last step to the first: each argument leads to the step before.
    if looped:
        return "calls the steps in a loop"
    last = _calls(driver, "postprocess")
    if len(last) != 1:
        return "does not call postprocess exactly once"
    _name_result(driver, last[0])
    inner = _only_argument(driver, last[0], "run")
    if inner is None:
        return "does not hand the result of run to postprocess unchanged"
    first = _only_argument(driver, inner, "preprocess")
    if first is None:
        return "does not hand the result of preprocess to run unchanged"
    if len(first.args) != 1 or first.keywords:
        return "gives preprocess more than the input"
    driver.input = first.args[0]
    if isinstance(driver.input, ast.Name) and driver.input.id != driver.arguments:
        source = _last_value(driver, driver.input.id)
        if source is None:
            return "makes the input of preprocess itself"
        driver.input = source
    return _other_result(driver, last[0])


def _only_argument(driver: Driver, call: ast.Call, wanted: str) -> ast.Call | None:
    """The call of the step `wanted`, where its result is the only argument of a call; None where it is not.

    A name may lie in between, as long as nothing else changes its value.
    """
    if len(call.args) != 1 or call.keywords:
        return None
    value: ast.expr | None = call.args[0]
    if isinstance(value, ast.Name):
        value = _last_value(driver, value.id, before=call)
    return value if isinstance(value, ast.Call) and step(driver, value) == wanted else None


def _last_value(driver: Driver, name: str, before: ast.expr | None = None) -> ast.expr | None:
    """The last value of a variable, before a call that uses it; None where it is not known."""
    value_used: ast.expr | None = None
    for names, value in driver.assigned:
        if before is not None and value is not None and any(node is before for node in ast.walk(value)):
            break
        if name in names:
            value_used = value if len(names) == 1 else None
    return value_used


def _name_result(driver: Driver, call: ast.Call) -> None:
    for names, value in driver.assigned:
        if value is call and all(names):
            driver.names = tuple(names)


def _returned(driver: Driver) -> list[ast.expr]:
    returned = [node.value for node in ast.walk(driver.node) if isinstance(node, ast.Return)]
    return [value for value in returned if value is not None]


def _other_result(driver: Driver, call: ast.Call) -> str:
    """A sentence where the driver returns something else than the result of postprocess; else empty."""
    for value in _returned(driver):
        if value is not call and tuple(_names(value)) != driver.names:
            return "returns something else than the result of postprocess"
    return ""


# The block that a run of the script executes


def main_block(tree: ast.Module) -> list[ast.stmt]:
    """The body of `if __name__ == "__main__":`; empty when there is none."""
    for node in tree.body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Compare) and "__main__" in ast.dump(node.test):
            return node.body
    return []


def call_of(body: list[ast.stmt], name: str) -> tuple[int, ast.Call, tuple[str, ...]] | None:
    """A block's call of the driver: the position of the statement, the call, and the names of its result."""
    for at, statement in enumerate(body):
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
                names = _names(statement.targets[0]) if isinstance(statement, ast.Assign) else []
                return at, node, tuple(names) if all(names) else ()
    return None


def result_names(driver: Driver, tree: ast.Module) -> tuple[str, ...]:
    """The names of the parts of the driver's own result: where it is used, or else where it is returned."""
    used = call_of(main_block(tree), driver.name)
    if used is not None and used[2]:
        return used[2]
    for value in _returned(driver):
        names = _names(value)
        if names and all(names):
            return tuple(names)
    return ()


def attributes_read(node: ast.AST, *owners: str) -> Iterator[str]:
    """The attributes of the script's arguments that a piece of code reads, by `owners` or by an attribute `args`."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute):
            owner = inner.value
            if (isinstance(owner, ast.Name) and owner.id in owners) or (
                isinstance(owner, ast.Attribute) and owner.attr == "args"
            ):
                yield inner.attr


def folders_listed(node: ast.AST, *owners: str) -> Iterator[str]:
    """The attributes of the script's arguments that a piece of code lists as folders."""
    for argument in _looked_into(node):
        yield from attributes_read(argument, *owners)


def lists(node: ast.AST, name: str) -> bool:
    """Whether a piece of code lists the folder in a variable."""
    inside = (inner for argument in _looked_into(node) for inner in ast.walk(argument))
    return any(isinstance(inner, ast.Name) and inner.id == name for inner in inside)


def _looked_into(node: ast.AST) -> Iterator[ast.expr]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call) and getattr(inner.func, "attr", getattr(inner.func, "id", "")) in LISTING:
            yield from inner.args


def stored_in_engine(methods: dict[str, Function]) -> set[str]:
    """State that steps leave in the engine: attributes that are set or filled in one method, and read in one."""
    working = [node for name, node in methods.items() if name not in BUILDING]
    left = {name for node in working for name in _own_attributes(node, stored=True)}
    return left & {name for node in working for name in _own_attributes(node, stored=False)}


def _own_attributes(method: Function, stored: bool) -> Iterator[str]:
    parameters = [*method.args.posonlyargs, *method.args.args]
    own = parameters[0].arg if parameters else ""
    for node in ast.walk(method):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in FILLING:
            target: ast.AST = getattr(node.func, "value", node)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            target = node.value
        else:
            target = node
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == own:
            changes = target is not node or isinstance(target.ctx, ast.Store)
            if changes == stored:
                yield target.attr
