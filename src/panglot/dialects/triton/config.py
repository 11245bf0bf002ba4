"""A model's config.pbtxt, as JSON for its script, and as settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from panglot.dialects.triton import environments
from panglot.dialects.triton.environments import EnvironmentPath
from panglot.errors import StartError
from panglot.packages.config_pbtxt import pbtxt, triton_config, triton_fields
from panglot.packages.config_pbtxt.pbtxt import Message
from panglot.settings.counts import exactly

NAME = "config.pbtxt"
BACKEND = "python"


class Configuration(NamedTuple):
    """The values of a config.pbtxt, for the script and as settings."""

    fields: dict[str, Any]
    """The values for the script, with Triton's names."""
    defaults: dict[str, Any]
    """Settings for workers, devices and batches. panglot.toml, variables and flags win over them."""
    problems: tuple[str, ...] = ()
    """A line for each field without an effect."""
    environment: EnvironmentPath | None = None
    """The Python environment that the script is to run in."""


def read(folder: Path, kind: str = BACKEND) -> Configuration:
    """The configuration of the model in a folder; empty without one. Raises StartError for another kind of model."""
    path = folder / NAME
    if not path.is_file():
        return Configuration({}, {})
    message = triton_config.read(path)
    backend = message.one("backend") or kind
    if backend != kind:
        raise StartError(f"its backend is {backend}, and the script is for {kind}", file=str(path),
                         fix=f'backend: "{kind}"')  # fmt: skip
    rows, delay = triton_config.tensors(message, path)["max_batch_size"], triton_config.delay_ms(message, path)
    defaults = {
        **triton_config.instances(message, path),
        **triton_config.waiting(message, path),
        **({"max_wait_ms": delay} if delay else {}),
        **({"max_batch": rows} if rows else {}),
    }
    problems = triton_fields.warnings(message, path, has_script=True)
    if "sequence_batching" in message:
        _check_sequences(message, path)
        # One worker, unless the file asks for more. And no second run: the script has changed its state already.
        defaults = {"workers": exactly(1), **defaults, "rerun": False}
    return Configuration(_fields(message), defaults, problems, environments.named(message, path))


def _check_sequences(message: Message, path: Path) -> None:
    """Raise StartError for a model of sequences that is decoupled."""
    policies = message.messages("model_transaction_policy")
    if policies and str(policies[-1].one("decoupled")) == "true":
        line = message.lines["sequence_batching"]
        raise StartError("a decoupled model has no sequences here", file=str(path), line=line)


def script_name(folder: Path) -> str:
    """The file name that a configuration gives the script of each version; empty: none. Raises StartError."""
    path = folder / NAME
    name = str(pbtxt.read(path).one("default_model_filename")) if path.is_file() else ""
    # A name with a folder in it would be no script of the version.
    return name if name.endswith(".py") and "/" not in name else ""


def _fields(message: Message, above: str = "") -> dict[str, Any]:
    return {name: _field(f"{above}.{name}" if above else name, values) for name, values in message.items()}


def _field(path: str, values: list[Any]) -> Any:
    kind = triton_fields.FIELDS[path].kind if path in triton_fields.FIELDS else triton_fields.ONE
    plain = [_value(value, path) for value in values]
    if kind == triton_fields.MAP:
        return {str(entry.get("key", "")): entry.get("value") for entry in plain if isinstance(entry, dict)}
    return plain if kind == triton_fields.LIST else plain[-1]


def _value(value: Any, path: str) -> Any:
    if isinstance(value, Message):
        return _fields(value, path)
    if isinstance(value, pbtxt.Word):
        return {"true": True, "false": False}.get(str(value), str(value))
    return value
