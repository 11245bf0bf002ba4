"""Noticing changes of a package's files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

IGNORED = {"__pycache__", ".git", ".venv", "node_modules", ".mypy_cache", ".ruff_cache", ".pytest_cache"}


async def changes(folder: Path) -> AsyncIterator[list[str]]:
    """Yield the names of changed files, gathered over a moment, until the caller stops."""
    from watchfiles import Change, awatch

    def matters(_change: Change, path: str) -> bool:
        inside = Path(path).relative_to(folder)
        return not IGNORED & set(inside.parts) and inside.suffix not in (".pyc", ".swp", ".tmp", ".log")

    async for batch in awatch(folder, watch_filter=matters, debounce=200, step=50, recursive=True):
        yield sorted({str(Path(path).relative_to(folder)) for _, path in batch})
