"""`python -m franca` is the command `franca`."""

from __future__ import annotations

from franca.cli import main

main()
