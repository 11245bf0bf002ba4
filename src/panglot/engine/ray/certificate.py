"""The certificate of one server's connections to its nodes. It lives in memory, as long as the server does."""

from __future__ import annotations

import subprocess

from panglot.errors import StartError

COMMAND = (
    "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-sha256",
    "-days", "3650", "-subj", "/CN=panglot", "-config", "/dev/stdin", "-keyout", "/dev/stdout",
)  # fmt: skip
CONFIG = """\
[req]
distinguished_name = name
x509_extensions = use
[name]
[use]
basicConstraints = critical, CA:TRUE
"""
SECONDS = 30


def make() -> str:
    """A certificate that has signed itself, and its key, in PEM form. Raises StartError."""
    try:
        done = subprocess.run(COMMAND, input=CONFIG, capture_output=True, text=True, timeout=SECONDS, check=True)
    except FileNotFoundError:
        fix = "install it (apt-get install openssl), or leave out --ray-tls"
        raise StartError("--ray-tls: openssl, which makes the certificate, is not on this machine", fix=fix) from None
    except subprocess.SubprocessError as error:
        said = (getattr(error, "stderr", "") or str(error)).strip().splitlines()[-1:]
        raise StartError(f"--ray-tls: openssl made no certificate: {' '.join(said)}") from None
    return done.stdout
