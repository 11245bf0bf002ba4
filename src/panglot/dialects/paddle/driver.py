"""What a script's driver does with its engine, read from its source."""

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
    """The function that builds an engine and takes one input through it."""

    name: str
    node: Function
    engine: str = ""
    """The variable that holds the engine."""
    arguments: str = ""
    """The parameter that holds the script's arguments; empty when it takes none."""
    assigned: list[tuple[list[str], ast.expr | None]] = field(default_factory=list)
    """Names and value of each assignment, in order; no value for what changes a name in place."""
    broken: str = ""
    """Why the steps cannot be called directly; empty when they can."""
    input: ast.expr | None = None
    """What preprocess gets."""
    names: tuple[str, ...] = ()
    """What the result's parts are called."""


def find(tree: ast.Module) -> Driver | None:
    """The driver: the function with the usual name, or else the first, that builds an engine."""
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
    """The driver's steps, and whether they are passed on to one another unchanged."""
    driver = Driver(node.name, node)
    parameters = [*node.args.posonlyargs, *node.args.args]
    driver.arguments = parameters[0].arg if parameters else ""
    looped = _follow(driver, node.body, False)
    driver.broken = _broken(driver, looped)
    return driver


def _follow(driver: Driver, body: list[ast.stmt], loop: bool) -> bool:
    """Note the assignments of a body in order; whether a step is called in a loop."""
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
    """Which step of the engine a call is; empty for everything else."""
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
    """Why the steps cannot be called directly. Fills in `input` and `names` on the way."""
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
    """The call of a step that gives another its only argument, directly or by a name nothing else changed."""
    if len(call.args) != 1 or call.keywords:
        return None
    value: ast.expr | None = call.args[0]
    if isinstance(value, ast.Name):
        value = _last_value(driver, value.id, before=call)
    return value if isinstance(value, ast.Call) and step(driver, value) == wanted else None


def _last_value(driver: Driver, name: str, before: ast.expr | None = None) -> ast.expr | None:
    """What a variable was last set to, before a call that uses it; None when that is not known."""
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
    """Whether the driver returns something else than what postprocess gave."""
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
    """Where a block calls the driver: the statement's position, the call, and what its result is called."""
    for at, statement in enumerate(body):
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
                names = _names(statement.targets[0]) if isinstance(statement, ast.Assign) else []
                return at, node, tuple(names) if all(names) else ()
    return None


def result_names(driver: Driver, tree: ast.Module) -> tuple[str, ...]:
    """What the parts of the driver's own result are called: where it is used, or where it is returned."""
    used = call_of(main_block(tree), driver.name)
    if used is not None and used[2]:
        return used[2]
    for value in _returned(driver):
        names = _names(value)
        if names and all(names):
            return tuple(names)
    return ()


def attributes_read(node: ast.AST, *owners: str) -> Iterator[str]:
    """The attributes that a piece of code reads of the script's arguments, however they are reached."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute):
            owner = inner.value
            if (isinstance(owner, ast.Name) and owner.id in owners) or (
                isinstance(owner, ast.Attribute) and owner.attr == "args"
            ):
                yield inner.attr


def folders_listed(node: ast.AST, *owners: str) -> Iterator[str]:
    """The attributes of the script's arguments that it looks into as folders."""
    for argument in _looked_into(node):
        yield from attributes_read(argument, *owners)


def lists(node: ast.AST, name: str) -> bool:
    """Whether a piece of code looks into what a variable holds as into a folder."""
    inside = (inner for argument in _looked_into(node) for inner in ast.walk(argument))
    return any(isinstance(inner, ast.Name) and inner.id == name for inner in inside)


def _looked_into(node: ast.AST) -> Iterator[ast.expr]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call) and getattr(inner.func, "attr", getattr(inner.func, "id", "")) in LISTING:
            yield from inner.args


def stored_in_engine(methods: dict[str, Function]) -> set[str]:
    """What steps leave in the engine for later ones: attributes that one method sets, or fills, and a step reads."""
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
