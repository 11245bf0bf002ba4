"""Certificates that sign themselves, made by openssl; a test is skipped where there is none."""

from __future__ import annotations

import subprocess
from pathlib import Path

from support.programs import need


def make(folder: Path, name: str, *alternatives: str) -> tuple[Path, Path]:
    """Two files: the certificate of a server called `name`, and its key. Alternatives are such as `DNS:localhost`."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = [need("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", f"/CN={name}", "-keyout", str(key), "-out", str(cert)]
    if alternatives:
        command += ["-addext", f"subjectAltName={','.join(alternatives)}"]
    subprocess.run(command, check=True, capture_output=True)
    return cert, key
