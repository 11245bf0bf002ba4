"""The HTTP contract of the platform: /api/predict/SERVICE of its gateway, and the short paths of a processor alone."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from panglot.engine.call import Fault
from panglot.packages.package import Package
from panglot.settings import Settings
from panglot.web.contract import Contract, ErrorAnswer, InferRoute, RequestLine, SignatureForm, TokenForm

TEXT = b"text/plain; charset=utf-8"
GATEWAY = "/api/predict/{service}"
METHODS = ("POST", "GET")
LONGEST_AGO = 15 * 3600
"""Seconds that the date of a signed request may be off: the platform's client writes its local time as GMT."""


def contract(package: Package, settings: Settings) -> Contract:
    """The routes of a service. The processor answers to any name of the service: only the gateway knows the names."""
    return Contract(
        routes=(
            InferRoute(GATEWAY, "/api/predict", methods=METHODS, whole_head=True),
            InferRoute(GATEWAY + "/{rest...}", "/api/predict", methods=METHODS, whole_head=True),
            InferRoute("/", "/", whole_head=True),
            InferRoute("/{path}", "/", whole_head=True),
        ),
        error=error,
        unknown=error,
        token_forms=(TokenForm(), SignatureForm("EAS", signature=signature)),
    )


def error(fault: Fault, request_id: str) -> ErrorAnswer:
    return ErrorAnswer(fault.status, TEXT, fault.message.encode("utf-8", "backslashreplace"))


def signature(token: bytes, line: RequestLine, headers: Mapping[bytes, bytes]) -> bytes:
    """The signature that `eas_prediction` sends: HMAC-SHA1 over method, three headers and path; empty without these.

    The body is signed by its MD5 in a header. The worker compares the MD5: the front does not read bodies.
    """
    date = headers.get(b"date", b"")
    if not headers.get(b"content-md5") or not _is_recent(date):
        return b""
    signed = (line.method, headers[b"content-md5"], headers.get(b"content-type", b""), date, line.path)
    return base64.b64encode(hmac.new(token, b"\n".join(signed), hashlib.sha1).digest())


def _is_recent(date: bytes) -> bool:
    try:
        then = parsedate_to_datetime(date.decode("ascii")).timestamp()
    except (ValueError, UnicodeDecodeError):
        return False
    return abs(time.time() - then) <= LONGEST_AGO
