"""The endpoints of a script's `chat` and `embed`."""

from __future__ import annotations

from typing import Any, Callable, List, Sequence

from panglot_worker.dialects.base import Package
from panglot_worker.dialects.plain.chat.embedding import EmbedEndpoint
from panglot_worker.dialects.plain.chat.endpoints import CHAT, COMPLETIONS, ChatEndpoint
from panglot_worker.dialects.plain.endpoints import Endpoint
from panglot_worker.errors import ScriptError


def endpoints(owners: Sequence[Any], package: Package, left: Callable[[], bool]) -> List[Endpoint]:
    """The endpoints, by what the front has found in the script. Raises ScriptError where it is not there."""
    count = _function(owners, "count_tokens")
    endpoints: List[Endpoint] = []
    if package.options.get("chat"):
        chat = _function(owners, "chat", package.script)
        pictures = bool(package.options.get("pictures"))
        endpoints += [ChatEndpoint(path, chat, package.name, count, left, pictures) for path in (CHAT, COMPLETIONS)]
    if package.options.get("embed"):
        most = int(package.settings.get("max_batch", 32))
        endpoints.append(EmbedEndpoint(_function(owners, "embed", package.script), package.name, count, most))
    return endpoints


def _function(owners: Sequence[Any], name: str, script: str = "") -> Any:
    """A function of the script, or of its Model; with `script` it must be there."""
    function = next(
        (candidate for candidate in (getattr(owner, name, None) for owner in owners) if callable(candidate)), None
    )
    if function is None and script:
        raise ScriptError("%s was seen when the script was read, and is not there" % name, script)
    return function
