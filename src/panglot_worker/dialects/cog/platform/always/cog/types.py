"""The types of inputs and outputs."""

from __future__ import annotations

import io
import pathlib
from typing import Any, AsyncIterator, Iterator, List, Optional, TypeVar, Union

Item = TypeVar("Item")
_OwnPath = type(pathlib.Path())
"""The class of paths of this machine: `pathlib.Path` itself cannot be derived from before Python 3.12."""


class FieldInfo:
    """What `Input(...)` says about an input. The dialect reads it, and no prediction sees it."""

    def __init__(self, default: Any, **more: Any) -> None:
        self.default = default
        self.description: Optional[str] = more.get("description")
        self.ge: Optional[float] = more.get("ge")
        self.le: Optional[float] = more.get("le")
        self.min_length: Optional[int] = more.get("min_length")
        self.max_length: Optional[int] = more.get("max_length")
        self.regex: Optional[str] = more.get("regex")
        self.choices: Optional[List[Any]] = more.get("choices")
        self.deprecated: Optional[bool] = more.get("deprecated")
        self.accept: Optional[str] = more.get("accept")


def Input(  # noqa: N802, PLR0913  the original's name and arguments
    default: Any = ...,
    description: Optional[str] = None,
    ge: Optional[float] = None,
    le: Optional[float] = None,
    min_length: Optional[int] = None,
    max_length: Optional[int] = None,
    regex: Optional[str] = None,
    choices: Optional[List[Union[str, int]]] = None,
    deprecated: Optional[bool] = None,
    accept: Optional[str] = None,
) -> Any:
    """An input of `predict`. Without a default it must be given; `default=None` makes it optional."""
    more = {name: value for name, value in locals().items() if name != "default"}
    return FieldInfo(default, **more)


class Path(_OwnPath):  # type: ignore[valid-type,misc]
    """A file of a request or an output. It is a `pathlib` path in everything."""


class URLPath(Path):
    """A path whose content is fetched from an address; here it is fetched before the prediction."""


class File(io.IOBase):
    """An open file, as the type of an input or output."""


class URLFile(File):
    """An open file that is fetched from an address; here it is fetched before the prediction."""


class Secret:
    """A text that no print shows."""

    def __init__(self, secret_value: str) -> None:
        self._secret_value = secret_value

    def get_secret_value(self) -> str:
        return self._secret_value

    def __str__(self) -> str:
        return "**********" if self._secret_value else ""

    def __repr__(self) -> str:
        return "Secret('%s')" % self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other.get_secret_value() == self._secret_value

    def __hash__(self) -> int:
        return hash(self._secret_value)

    def __len__(self) -> int:
        return len(self._secret_value)


class ConcatenateIterator(Iterator[Item]):
    """The type of an output whose texts belong together."""


class AsyncConcatenateIterator(AsyncIterator[Item]):
    """The same for async generators."""


class Opaque:
    """In `Annotated[..., Opaque]`: a value of which nothing is known but that JSON can hold it."""
