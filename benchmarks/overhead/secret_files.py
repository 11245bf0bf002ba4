"""The token and the keys of servers that are closed, each in a file of the scratch folder."""

from __future__ import annotations

import hashlib
from pathlib import Path

SECRET = "pgk-" + "overhead" * 5 + "key"
"""The same in every run: it opens servers on loopback alone, and for seconds."""
TOKEN, KEYS, LIMITED_KEYS = "token", "keys.toml", "limited-keys.toml"
OTHERS = 9
"""Keys beside the one that is used."""
LIMITS = "rate = 1000000\nat_once = 1000000\n"
"""Limits that are counted and told, and never reached."""


def write(folder: Path) -> None:
    """Write all files."""
    (folder / TOKEN).write_text(SECRET)
    (folder / TOKEN).chmod(0o600)
    secrets = [SECRET, *(f"{SECRET}{number}" for number in range(OTHERS))]
    (folder / KEYS).write_text("\n".join(entry(number, secret) for number, secret in enumerate(secrets)))
    limited = (entry(number, secret) + LIMITS for number, secret in enumerate(secrets))
    (folder / LIMITED_KEYS).write_text("\n".join(limited))


def entry(number: int, secret: str) -> str:
    """A key as the file has it."""
    return f'[[key]]\nname = "client-{number}"\nsecret = "sha256:{hashlib.sha256(secret.encode()).hexdigest()}"\n'
