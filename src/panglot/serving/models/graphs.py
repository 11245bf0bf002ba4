"""Models that call others, checked once all of them are loaded: only then is it known what each takes and gives."""

from __future__ import annotations

from collections.abc import Iterable

from panglot import dialects
from panglot.errors import LoadError, StartError
from panglot.web.models import Model


async def check(model: Model, served: Iterable[Model]) -> None:
    """Check a loaded model against the loaded models that are served with it. Raises LoadError."""
    known = [(other.name, other.version, other.package, other.api.get("tensors")) for other in served]
    try:
        dialects.check_loaded(model.package, known)
    except StartError as error:
        raise LoadError(error.problem, file=error.file, line=error.line or 0, fix=error.fix) from None
