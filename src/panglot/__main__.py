"""`python -m panglot` is the command `panglot`."""

from __future__ import annotations

from panglot.cli import main

main()
