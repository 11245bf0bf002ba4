"""Ensembles: a config.pbtxt that joins other models of the server to a graph, checked before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from panglot.dialects.triton import chain_plan, decoupling
from panglot.dialects.triton import config as configs
from panglot.dialects.triton.ensemble_step import Step
from panglot.errors import StartError
from panglot.packages.config_pbtxt import triton_config
from panglot.packages.config_pbtxt.pbtxt import Message
from panglot.packages.package import Package
from panglot.settings import suggestion
from panglot.settings.counts import exactly
from panglot_worker.line.description import TensorDescription

DIALECT, PLATFORM = "triton", "ensemble"
FREE, BYTES = -1, "BYTES"


def is_ensemble(config: Message) -> bool:
    return config.one("platform") == PLATFORM or "ensemble_scheduling" in config


def package(root: Path, version: str) -> Package:
    """The package of an ensemble; its steps are checked as far as its own file tells. Raises StartError."""
    path = root / configs.NAME
    config = triton_config.read(path)
    steps = _steps(config, path)
    _check_graph(config, steps, path)
    read = configs.read(root, PLATFORM)
    return Package(
        name=str(config.one("name") or root.name),
        folder=root,
        script=path,
        dialect=DIALECT,
        entry=PLATFORM,
        reasons=(f"{configs.NAME} has {len(steps)} steps",),
        problems=read.problems,
        defaults={"workers": exactly(1)},
        options={
            "config": read.fields,
            "root": str(root),
            "version": version,
            "tensors": triton_config.tensors(config, path),
            "ensemble": [
                {"model": step.model, "version": step.version, "inputs": step.inputs, "outputs": step.outputs}
                for step in steps
            ],
        },
        facts={"version": (version,), "steps": tuple(str(step) for step in steps)},
        whole=root,
    )


def _steps(config: Message, path: Path) -> list[Step]:
    schedules = config.messages("ensemble_scheduling")
    entries = schedules[-1].messages("step") if schedules else []
    if not entries:
        raise StartError("an ensemble needs steps", file=str(path), fix="ensemble_scheduling { step [ ... ] }")
    steps = []
    for number, entry in enumerate(entries, 1):
        version = entry.one("model_version", FREE)
        if not entry.one("model_name") or not isinstance(version, int):
            problem = f"step {number} needs a model_name, and its model_version is a whole number"
            raise StartError(problem, file=str(path), line=entry.line)
        maps = [_map(entry, name, path) for name in ("input_map", "output_map")]
        named = str(version) if version > 0 else ""
        steps.append(Step(number, str(entry.one("model_name")), named, maps[0], maps[1], entry.line))
    return steps


def _map(step: Message, name: str, path: Path) -> dict[str, str]:
    entries = step.messages(name)
    for entry in entries:
        if not entry.one("key") or not entry.one("value"):
            raise StartError(f"{name} needs a key and a value", file=str(path), line=entry.line)
    return {str(entry.one("key")): str(entry.one("value")) for entry in entries}


def _check_graph(config: Message, steps: Sequence[Step], path: Path) -> None:
    """Raise StartError for a tensor that no step makes or two make, and for steps that wait for each other."""
    inputs = [str(tensor.one("name")) for tensor in config.messages("input")]
    made: dict[str, str] = dict.fromkeys(inputs, "an input")
    for step in steps:
        for name in step.outputs.values():
            if name in made:
                problem = f"'{name}' is the output of {step}, and it is {made[name]} too"
                raise StartError(problem, file=str(path), line=step.line)
            made[name] = f"the output of {step}"
    for step in steps:
        for name in step.inputs.values():
            if name not in made:
                problem = f"{step} needs '{name}', which is no input and no output of a step"
                raise StartError(problem, file=str(path), line=step.line, fix=suggestion(name, made))
    for output in config.messages("output"):
        if output.one("name") not in made:
            problem = f"the output '{output.one('name')}' is no output of a step"
            raise StartError(problem, file=str(path), line=output.line)
    known, waiting = set(inputs), list(steps)
    while waiting:
        ready = [step for step in waiting if known.issuperset(step.inputs.values())]
        if not ready:
            listed = ", ".join(str(step) for step in waiting)
            raise StartError(f"these steps wait for each other: {listed}", file=str(path), line=waiting[0].line)
        for step in ready:
            waiting.remove(step)
            known.update(step.outputs.values())


# Among the other models of the server


class ServedModel(NamedTuple):
    """A model of the server, as far as its own configuration tells."""

    name: str
    version: str
    package: Package
    loaded: TensorDescription | None = None
    """The tensors as its worker describes them, once it is loaded."""

    @property
    def tensors(self) -> Mapping[str, Any]:
        """The tensors in its configuration; empty where there are none."""
        # Without outputs, the configuration leaves the tensors to the model, which is not loaded yet.
        declared: Mapping[str, Any] = self.package.options.get("tensors") or {}
        return declared if declared.get("outputs") else {}

    @property
    def loaded_tensors(self) -> Mapping[str, Any]:
        """The tensors of the loaded model; empty where it takes others too."""
        needs = self.loaded.get("needs") if self.loaded is not None else None
        if self.loaded is None or needs is None:
            return {}
        inputs = [{**tensor, "optional": tensor["name"] not in needs} for tensor in self.loaded["inputs"]]
        return {"inputs": inputs, "outputs": self.loaded["outputs"]}

    @property
    def _own(self) -> Mapping[str, Any]:
        """The options of this dialect: those of another may have the same names, and mean something else."""
        return self.package.options if self.package.dialect == DIALECT else {}

    @property
    def steps(self) -> set[str]:
        """The models that an ensemble calls."""
        return {step["model"] for step in self._own.get("ensemble", ())}

    @property
    def is_decoupled(self) -> bool:
        """Whether its own configuration says so."""
        config = self._own.get("config") or {}
        return bool((config.get("model_transaction_policy") or {}).get("decoupled"))


def join(package: Package, models: Sequence[tuple[str, str, Package]]) -> Package:
    """An ensemble, checked against the models of the server, and completed by them. Raises StartError."""
    path = package.script
    served = [ServedModel(*model) for model in models]
    steps = _steps(triton_config.read(path), path)
    declared = package.options["tensors"]
    kinds: dict[str, dict[str, Any]] = {tensor["name"]: tensor for tensor in declared["inputs"]}
    callees = {step.number: _callee(step, served, path) for step in steps}
    ordered = _ordered(steps, kinds)
    for step in ordered:
        if callees[step.number].tensors:
            _check_step(step, callees[step.number].tensors, kinds, path)
    for tensor in declared["outputs"]:
        _compare(tensor, kinds.get(tensor["name"]), f"the output '{tensor['name']}'", path, 0)
    _check_cycle(package, served, path, steps)
    decoupled = {step.number for step in steps if any(model.is_decoupled for model in _reached(step.model, served))}
    return decoupling.joined(chain_plan.joined(package, ordered, decoupled), ordered, decoupled, path)


def check_loaded(package: Package, models: Sequence[tuple[str, str, Package, TensorDescription | None]]) -> None:
    """Check the steps by what the models say of themselves, where their configuration says nothing. Raises StartError.

    Inputs that a model takes in another form than it describes are no mismatch. The ensemble's own outputs must have
    the types and shapes that its configuration promises to clients, as in Triton.
    """
    path = package.script
    served = {(name, version): ServedModel(name, version, other, loaded) for name, version, other, loaded in models}
    steps = _steps(triton_config.read(path), path)
    kinds = {tensor["name"]: tensor for tensor in package.options["tensors"]["inputs"]}
    for step in _ordered(steps, kinds):
        same = [model for model in served.values() if model.name == step.model]
        # With `partial`, a model may be missing that could not be loaded: it may be loaded later.
        if not same or (step.version and (step.model, step.version) not in served):
            continue
        callee = _callee(step, same, path)
        tensors = callee.tensors or callee.loaded_tensors
        if tensors:
            _check_step(step, tensors, kinds, path, is_loaded=True)
    for tensor in package.options["tensors"]["outputs"]:
        _compare(tensor, kinds.get(tensor["name"]), f"the output '{tensor['name']}'", path, 0, is_loaded=True)


def _ordered(steps: Sequence[Step], known: Mapping[str, Any]) -> list[Step]:
    """The steps, each behind the steps that make its inputs. `_check_graph` has made sure that this is possible."""
    names, ordered, waiting = set(known), [], list(steps)
    while waiting:
        step = next(step for step in waiting if names.issuperset(step.inputs.values()))
        waiting.remove(step)
        ordered.append(step)
        names.update(step.outputs.values())
    return ordered


def _callee(step: Step, served: Sequence[ServedModel], path: Path) -> ServedModel:
    same = [model for model in served if model.name == step.model]
    if not same:
        fix = suggestion(step.model, [model.name for model in served]) or "serve the whole repository: --models DIR"
        raise StartError(f"{step}: this server has no model '{step.model}'", file=str(path), line=step.line, fix=fix)
    chosen = next((model for model in same if model.version == step.version), None) if step.version else same[-1]
    if chosen is None:
        there = ", ".join(model.version for model in same)
        problem = f"{step}: version {step.version} is not served; there is {there}"
        raise StartError(problem, file=str(path), line=step.line)
    return chosen


def _check_step(
    step: Step, tensors: Mapping[str, Any], kinds: dict[str, dict[str, Any]], path: Path, is_loaded: bool = False
) -> None:
    """Raise StartError where a step does not fit the tensors of its model. Adds its outputs to `kinds`."""
    inputs = {tensor["name"]: tensor for tensor in tensors["inputs"]}
    outputs = {tensor["name"]: tensor for tensor in tensors["outputs"]}
    read: set[str] = _given_as_bytes(step, inputs, kinds) if is_loaded else set()
    for what, known, mapped in (("input", [*inputs, *read], step.inputs), ("output", [*outputs], step.outputs)):
        for name in mapped:
            if name not in known:
                problem = f"{step} has no {what} '{name}'; there is {', '.join(known) or 'none'}"
                raise StartError(problem, file=str(path), line=step.line)
    for name, tensor in inputs.items():
        if name in step.inputs:
            what = f"{step}: '{step.inputs[name]}', its input '{name}',"
            given = kinds.get(step.inputs[name]) if name not in read else None
            _compare(tensor, given, what, path, step.line, is_loaded)
        elif not tensor.get("optional") and not (read and len(inputs) == 1):
            raise StartError(f"{step}: its input '{name}' is not in input_map", file=str(path), line=step.line)
    for inner, name in step.outputs.items():
        kinds[name] = outputs[inner]


def _given_as_bytes(step: Step, inputs: Mapping[str, Any], kinds: Mapping[str, Any]) -> set[str]:
    """The inputs that a loaded model may read by itself: an encoded image, or the body of a request as the only one."""
    given = {inner for inner, name in step.inputs.items() if kinds.get(name, {}).get("datatype") == BYTES}
    return given if len(inputs) == 1 else given.intersection(inputs)


def _compare(
    wanted: Mapping[str, Any],
    given: Mapping[str, Any] | None,
    what: str,
    path: Path,
    line: int,
    is_loaded: bool = False,
) -> None:
    """Raise StartError where two descriptions of one tensor differ in type or shape."""
    if given is None:
        return
    if wanted["datatype"] != given["datatype"] and not (is_loaded and "" in (wanted["datatype"], given["datatype"])):
        problem = f"{what} must be {wanted['datatype']}, and is {given['datatype']}"
        raise StartError(problem, file=str(path), line=line)
    expected, there = list(wanted["shape"]), list(given["shape"])
    if is_loaded and [FREE] in (expected, there):
        # A shape that the file of a model does not say is described so too.
        return
    if is_loaded and len(expected) == len(there) + 1 and expected[0] in (FREE, 1):
        # A single row gets the dimension that it lacks.
        del expected[0]
    if len(expected) != len(there) or any(
        FREE not in sizes and len(set(sizes)) > 1 for sizes in zip(expected, there, strict=True)
    ):
        raise StartError(f"{what} must have the shape {expected}, and has {there}", file=str(path), line=line)


def _check_cycle(package: Package, served: Sequence[ServedModel], path: Path, steps: Sequence[Step]) -> None:
    """Raise StartError where an ensemble calls itself, directly or through others."""
    # Found by identity: on the server, the model may have another name than in its file.
    own = next((model.name for model in served if model.package is package), package.name)
    for step in steps:
        if any(model.name == own for model in _reached(step.model, served)):
            raise StartError(f"{step} leads back to '{own}' itself", file=str(path), line=step.line)


def _reached(name: str, served: Sequence[ServedModel]) -> list[ServedModel]:
    """A model, and all that it calls as an ensemble, directly or through others."""
    reached: list[ServedModel] = []
    names, seen = [name], {name}
    while names:
        name = names.pop()
        for model in served:
            if model.name == name:
                reached.append(model)
                names += model.steps - seen
                seen |= model.steps
    return reached
