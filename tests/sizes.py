"""Where our longest files and functions stand; shown by `make check`."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"
LONG_FILE = 450
"""The usual limit. It is there to notice a file that does several jobs, and no reason to squeeze one that does one."""
LONGER = {
    "panglot/engine/engine.py": (550, "the engine's life and every way into it; its parts are files of their own"),
    "panglot/engine/pools/pool.py": (550, "the pool and its answers from workers; its parts are files of their own"),
    "panglot/engine/workers/supervisor.py": (550, "the workers of a pool; how they start and end is read together"),
    "panglot/engine/workers/worker.py": (550, "the front's record of a worker: one object with much to know"),
    "panglot/jobs/board.py": (550, "the life of a job from the client's request to its answer, on one event loop"),
    "panglot/jobs/storage/commands.py": (550, "a list: one command of the database after the other"),
    "panglot/settings/all_settings.py": (600, "a table: a few lines for each setting"),
    "panglot/web/app.py": (550, "a table: the routes of the server, and what answers them"),
    "panglot/web/documents/openapi.py": (550, "one document, in the order in which it is written"),
    "panglot/web/http1/request_reader.py": (550, "the states between the first byte of a request and its last"),
    "panglot_worker/line/wire.py": (550, "all frames and events between front and worker, defined once"),
}
"""Files that do one longer job: the limit of each, and the reason."""
LONG_FUNCTION = 60


def main() -> None:
    files: list[tuple[int, str]] = []
    functions: list[tuple[int, str]] = []
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text()
        name = str(path.relative_to(SOURCE))
        files.append((text.count("\n"), name))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                functions.append((length, f"{name}:{node.lineno} {node.name}"))
    files.sort(reverse=True)
    functions.sort(reverse=True)
    print("longest files:     " + ", ".join(f"{name} {length}" for length, name in files[:4]))
    print("longest functions: " + ", ".join(f"{name} {length}" for length, name in functions[:4]))
    gone = sorted(set(LONGER) - {name for _, name in files})
    if gone:
        raise SystemExit("no longer there, so take it out of LONGER: " + ", ".join(gone))
    over = [entry for entry in files if entry[0] > LONGER.get(entry[1], (LONG_FILE, ""))[0]]
    over += [entry for entry in functions if entry[0] > LONG_FUNCTION]
    if over:
        raise SystemExit("too long: " + ", ".join(f"{name} ({length} lines)" for length, name in over))


main()
