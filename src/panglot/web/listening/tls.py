"""The certificate that the server shows."""

from __future__ import annotations

import ssl

from panglot.errors import StartError
from panglot.settings import Settings


def tls_context(settings: Settings) -> ssl.SSLContext | None:
    """The certificate to serve with, if one is set. Raises StartError when it cannot be used."""
    if not settings.tls_cert and not settings.tls_key:
        return None
    if not (settings.tls_cert and settings.tls_key):
        raise StartError("TLS needs both --tls-cert and --tls-key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(settings.tls_cert, settings.tls_key)
    except (OSError, ssl.SSLError) as error:
        raise StartError(f"the certificate cannot be used: {error}", file=settings.tls_cert) from None
    return context
