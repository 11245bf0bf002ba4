"""Write docs/reference/conformance.md from the marks on tests and from how these went when they last ran."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from conformance import page, table


def main() -> int:
    """0 when no feature fails."""
    rows = page.rows(table.results(), page.FILE.read_text(encoding="utf-8") if page.FILE.is_file() else "")
    page.FILE.write_text(page.render(rows), encoding="utf-8")
    for row in rows:
        if row.state != page.PASSES:
            print(f"{row.feature.id:14} {row.state:8} {row.feature.text}")
    print(f"{page.FILE.relative_to(table.ROOT)} is written")
    return 1 if any(row.state == page.FAILS for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
