"""The code by which a front, an agent or a worker starts a process of Panglot in a script's interpreter."""

from __future__ import annotations

RETAINED = "_PANGLOT_RETAINED"
"""The variable by which an agent gives a worker `Package.retained`: the open file is the agent's, not the front's."""
CODE = """\
import sys
sys.path[:] = [entry for entry in sys.path if entry]
from importlib import util
folder = sys.argv[1]
spec = util.spec_from_file_location("panglot_worker", folder + "/__init__.py", submodule_search_locations=[folder])
sys.modules["panglot_worker"] = module = util.module_from_spec(spec)
spec.loader.exec_module(module)
from {module} import {function} as main
main(*sys.argv[2:])
"""


def code(module: str, function: str = "main") -> str:
    """The code for `-c`. Its first argument is the folder of panglot_worker; the function gets the further ones.

    It registers panglot_worker by its location and adds nothing to sys.path; the current folder is absent until our own
    imports are done, so that a script called json.py cannot replace the module. As `-c` code it leaves `__main__`
    without a file, so that multiprocessing children of a script do not import it again.
    """
    return CODE.format(module=module, function=function)
