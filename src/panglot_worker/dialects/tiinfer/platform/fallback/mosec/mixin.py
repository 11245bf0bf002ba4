"""Other formats than JSON, and other ways between processes.

The first kind needs its library when a request comes. The second has nothing to do, and needs none: between stages
large arrays are in shared memory anyway.
"""

from __future__ import annotations

import importlib
import typing
from typing import Any

from mosec.errors import DecodingError, EncodingError, ValidationError


class MsgpackMixin:
    """Requests and answers in MessagePack, by the package `msgpack`."""

    req_mime_type = "application/msgpack"
    resp_mime_type = "application/msgpack"

    def serialize(self, data: Any) -> bytes:
        try:
            packed: bytes = _library("msgpack").packb(data)
        except (TypeError, ValueError) as error:
            raise EncodingError from error
        return packed

    def deserialize(self, data: bytes) -> Any:
        """The value of a body. Raises DecodingError."""
        msgpack = _library("msgpack")
        try:
            return msgpack.unpackb(data, use_list=False)
        except (ValueError, msgpack.exceptions.UnpackException) as error:
            raise DecodingError from error


class TypedMsgPackMixin:
    """Requests in MessagePack, read as the type `forward` is annotated with, by the package `msgspec`."""

    req_mime_type = "application/msgpack"
    resp_mime_type = "application/msgpack"
    max_batch_size: int

    def serialize(self, data: Any) -> bytes:
        try:
            packed: bytes = _library("msgspec.msgpack").encode(data)
        except (TypeError, NotImplementedError) as error:
            raise EncodingError from error
        return packed

    def deserialize(self, data: Any) -> Any:
        """The value of a body, as the type that `forward` takes. Raises DecodingError and ValidationError."""
        msgspec = _library("msgspec")
        try:
            return msgspec.msgpack.decode(data, type=self._expected())
        except msgspec.ValidationError as error:
            raise ValidationError(str(error)) from error
        except msgspec.DecodeError as error:
            raise DecodingError(str(error)) from error

    def _expected(self) -> Any:
        """What `forward` takes; one element of it where it takes batches."""
        hints = typing.get_type_hints(self.forward)  # type: ignore[attr-defined]
        hints.pop("return", None)
        expected = next(iter(hints.values()), Any)
        inner = typing.get_args(expected)
        return inner[0] if self.max_batch_size > 1 and inner else expected


class NumBinIPCMixin:
    """Arrays between processes; nothing to do here."""


class PlasmaShmIPCMixin:
    """Large data between processes; nothing to do here."""

    @classmethod
    def set_plasma_path(cls, path: str) -> None:
        """Has no effect: no store is needed."""


class RedisShmIPCMixin:
    """Large data between processes; nothing to do here."""

    @classmethod
    def set_redis_url(cls, url: str) -> None:
        """Has no effect: no store is needed."""


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        package = name.partition(".")[0]
        raise RuntimeError("this mixin needs %s: python -m pip install %s" % (package, package)) from error
