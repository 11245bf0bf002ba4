"""Write docs/conformance.md from the marks on tests and from how these went when they last ran."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from conformance import table


def main() -> int:
    """0 when every feature that has a test passes."""
    results = table.results()
    table.PAGE.write_text(table.page(results), encoding="utf-8")
    proven = table.proofs()
    bad = 0
    for feature in table.features().values():
        state = table.state(feature, proven.get(feature.id, []), results)
        if state != table.PASSES:
            print(f"{feature.id:14} {state:8} {feature.text}")
        bad += state not in (table.PASSES, table.NO_TEST)
    print(f"{table.PAGE.relative_to(table.ROOT)} is written")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
