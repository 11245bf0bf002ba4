"""What the platform gives to the model's `__init__`: its configuration, secrets, data, and the environment."""

from __future__ import annotations

import inspect
import os
import pathlib
from collections.abc import Mapping
from typing import Any, Dict, Iterator

from panglot_worker.dialects.truss import environment
from panglot_worker.errors import ScriptError

SECRETS = "/secrets"
VARIABLE = "TRUSS_SECRET_"
HUB_SECRET, HUB_VARIABLE = "hf_access_token", "HF_TOKEN"
MISSING = """
Secret '%s' not found. Please ensure that:
  * Secret '%s' is defined in the 'secrets' section of the Truss config file
  * Secret '%s' is defined in the secret manager, here: in the variable TRUSS_SECRET_%s, or as the file /secrets/%s
    """


class SecretNotFound(Exception):
    pass


class Secrets(Mapping):  # type: ignore[type-arg]  # Python 3.8 has no Mapping[str, str] to derive from
    """The secrets that config.yaml declares, each looked up when it is asked for."""

    def __init__(self, declared: Dict[str, Any]) -> None:
        self._declared = declared

    def __getitem__(self, key: str) -> str:
        value = self._value(key) if key in self._declared else ""
        if not value:
            raise SecretNotFound(MISSING % ((key,) * 5))
        return value

    def _value(self, key: str) -> str:
        try:
            with open(os.path.join(SECRETS, key), encoding="utf-8") as file:
                return file.read()
        except OSError:
            return str(os.environ.get(VARIABLE + key) or self._declared[key] or "")

    def __iter__(self) -> Iterator[str]:
        raise NotImplementedError("Secrets are meant for lookup and can't be iterated on")

    def __len__(self) -> int:
        return len(self._declared)


class LazyDataResolver:
    """What waits for the platform's downloads. Here nothing is downloaded: files are there, or they are not."""

    def block_until_download_complete(self, log_stats: bool = True, issue_collect: bool = True) -> str:
        return ""

    def raise_if_not_collected(self) -> None:
        pass


def arguments(kind: Any, config: Dict[str, Any]) -> Dict[str, Any]:
    """The arguments of the class: of all that the platform gives, what its signature takes. Raises ScriptError."""
    secrets = Secrets(config.get("secrets") or {})
    if HUB_SECRET in (config.get("secrets") or {}) and HUB_VARIABLE not in os.environ:
        # The libraries of Hugging Face read the variable, and know nothing of the secrets.
        try:
            os.environ[HUB_VARIABLE] = secrets[HUB_SECRET]
        except SecretNotFound:
            pass
    given = {
        "config": config,
        "data_dir": pathlib.Path("data"),
        "secrets": secrets,
        "lazy_data_resolver": LazyDataResolver(),
        "environment": environment.current(),
    }
    signature = inspect.signature(kind)
    takes_all = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in signature.parameters.values())
    chosen = given if takes_all else {name: value for name, value in given.items() if name in signature.parameters}
    try:
        signature.bind(**chosen)
    except TypeError as error:
        code = getattr(getattr(kind, "__init__", None), "__code__", None)
        raise ScriptError(
            "%s.__init__ cannot be called: %s; the platform gives %s" % (kind.__name__, error, ", ".join(given)),
            getattr(code, "co_filename", ""),
            getattr(code, "co_firstlineno", 0),
            fix="def __init__(self, **kwargs)",
        ) from None
    return chosen
