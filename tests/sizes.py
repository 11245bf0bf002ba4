"""Where our longest files and functions stand; shown by `make check`."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"
LONG_FILE = 450
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
    over = [entry for entry in files if entry[0] > LONG_FILE] + [
        entry for entry in functions if entry[0] > LONG_FUNCTION
    ]
    if over:
        raise SystemExit("too long: " + ", ".join(f"{name} ({length} lines)" for length, name in over))


main()
