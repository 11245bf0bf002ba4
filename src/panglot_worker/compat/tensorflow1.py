"""TensorFlow 1 scripts on TensorFlow 2: missing names are supplied from `tf.compat.v1` before a script uses them.

For scripts that use no such name nothing changes. A script that opens a session, and uses no name of TensorFlow 2, gets
the old behaviour too: graphs instead of eager execution.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, List, Tuple

from panglot_worker.compat.importing import after_import
from panglot_worker.files import syntax

Say = Callable[[str], None]

LAZY = ("keras", "estimator", "contrib")
"""Access to an attribute of these loads them, and compat.v1 has nothing to add to them."""
OLD_WORLD = ("Session", "InteractiveSession", "placeholder", "placeholder_with_default", "get_variable", "train.Saver")
NEW_WORLD = ("compat", "function", "GradientTape", "__version__", "version", "VERSION", "keras", "Module")


def prepare(folder: str, say: Say) -> None:
    """Supply the names that scripts of a folder use and TensorFlow no longer has, once they import it."""
    used: Dict[str, Tuple[str, int]] = {}
    for path, tree in syntax.trees(folder, b"tensorflow"):
        for name, line in syntax.names_used(tree, "tensorflow").items():
            used.setdefault(name, (os.path.relpath(path, folder), line))
    if used:
        after_import("tensorflow", lambda tensorflow: supply(tensorflow, used, say))


def supply(tensorflow: Any, used: Dict[str, Tuple[str, int]], say: Say) -> None:
    """Give TensorFlow the names in `used` that it lacks and `tf.compat.v1` has, and say so in one line."""
    old = getattr(getattr(tensorflow, "compat", None), "v1", None)
    if old is None or old is tensorflow:
        return
    supplied = [name for name in sorted(used) if name.partition(".")[0] not in LAZY and _add(tensorflow, old, name)]
    if not supplied:
        return
    first = min(supplied, key=lambda name: used[name])
    text = "TensorFlow %s has no %s (%s:%d): supplied from tf.compat.v1" % (
        tensorflow.__version__,
        _listed(["tf." + name for name in supplied]),
        *used[first],
    )
    if _is_of_the_old_world(used, supplied):
        old.disable_v2_behavior()
        text += ", and TensorFlow 1 behaviour turned on"
    say(text)


def _add(tensorflow: Any, old: Any, dotted: str) -> bool:
    """Add the first missing part of a dotted name. False when none is missing, or `old` does not have it."""
    here, there = tensorflow, old
    for step in dotted.split("."):
        there = getattr(there, step, None)
        if not hasattr(here, step):
            if there is None:
                return False
            setattr(here, step, there)
            return True
        here = getattr(here, step)
    return False


def _is_of_the_old_world(used: Dict[str, Tuple[str, int]], supplied: List[str]) -> bool:
    knows_the_new = any(name.partition(".")[0] in NEW_WORLD for name in used)
    return not knows_the_new and any(name in OLD_WORLD for name in supplied)


def _listed(names: List[str]) -> str:
    return ", ".join(names[:4]) + (" and %d more" % (len(names) - 4) if len(names) > 4 else "")
