"""Models that call others, checked once all of them are loaded: only then is it known what each takes and gives."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from panglot import dialects
from panglot.errors import LoadError, StartError
from panglot.web.models import Model

log = logging.getLogger("panglot.models")


async def check(model: Model, served: Iterable[Model], *, joins: bool = False) -> None:
    """Check a loaded model against the loaded models that are served with it. Raises LoadError.

    A front that `joins` others only logs what it finds. They serve the model, and may have loaded one that it calls
    again since they checked it. A front that ended for this would be started and end again and again.
    """
    known = [(other.name, other.version, other.package, other.api.get("tensors")) for other in served]
    try:
        dialects.check_loaded(model.package, known)
    except StartError as error:
        if joins:
            log.error("%s does not fit the models that it calls: %s", model.name, error.sentence())
            return
        raise LoadError(error.problem, file=error.file, line=error.line or 0, fix=error.fix) from None
