"""SavedModel folders in environments whose TensorFlow came with Keras 3, which cannot load them."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from typing import Iterator, Optional

from panglot_worker.errors import ScriptError

VARIABLE = "TF_USE_LEGACY_KERAS"
SAVED_MODEL = "saved_model.pb"
MOST_FOLDERS = 2000
DEEPEST = 6


class Legacy:
    """Turns on Keras 2 where the package needs it and it is installed, before TensorFlow is imported."""

    def __init__(self, *folders: str) -> None:
        self.missing = ""
        """The SavedModel that needs Keras 2, where that is not installed."""
        if VARIABLE in os.environ:
            return
        file = saved_model(*folders)
        if file is None:
            return
        if is_installed("tf_keras"):
            # TensorFlow reads the variable when it is imported; later it has no effect.
            os.environ[VARIABLE] = "1"
        else:
            self.missing = file

    @contextlib.contextmanager
    def explaining(self, script: str) -> Iterator[None]:
        """While the script loads: where it fails because Keras 2 is missing, the error names the package to install."""
        try:
            yield
        except Exception as error:
            if not self.missing or not has_keras_3():
                raise
            problem = "loading failed; Keras 3 cannot load %s" % self.missing
            fix = "%s -m pip install tf-keras" % sys.executable
            cause = error.__cause__ if isinstance(error, ScriptError) else error
            raise ScriptError(problem, script, getattr(error, "line", 0), fix) from cause


def saved_model(*folders: str) -> Optional[str]:
    """The first SavedModel in these folders or below them."""
    seen = 0
    for top in dict.fromkeys(map(os.path.abspath, folders)):
        for folder, inner, files in os.walk(top):
            seen += 1
            if SAVED_MODEL in files:
                return os.path.join(folder, SAVED_MODEL)
            if seen >= MOST_FOLDERS:
                return None
            depth = folder[len(top) :].count(os.sep)
            inner[:] = [] if depth >= DEEPEST else sorted(name for name in inner if not name.startswith("."))
    return None


def is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def has_keras_3() -> bool:
    keras = sys.modules.get("keras")
    return "tensorflow" in sys.modules and str(getattr(keras, "__version__", "")).startswith("3")
