"""`BaseModel` for outputs: a class with annotated fields, made with keywords."""

from __future__ import annotations

import json
from typing import Any, Dict, Optional, Tuple, Type, Union, get_type_hints

NONE = type(None)


class BaseModel:
    """A value with fields. A field without a default that is Optional is None; any other must be given."""

    def __init__(self, **values: Any) -> None:
        fields = self.fields()
        unknown = [name for name in values if name not in fields]
        if unknown:
            raise TypeError("%s has no field %s" % (type(self).__name__, ", ".join(unknown)))
        for name, kind in fields.items():
            if name in values:
                setattr(self, name, values[name])
            elif not hasattr(type(self), name):
                if not is_optional(kind):
                    raise TypeError("%s needs the field %s" % (type(self).__name__, name))
                setattr(self, name, None)
            else:
                setattr(self, name, getattr(type(self), name))

    @classmethod
    def fields(cls) -> Dict[str, Any]:
        """The annotated fields, those of base classes first."""
        return {name: kind for name, kind in get_type_hints(cls).items() if not name.startswith("_")}

    def dict(self, **options: Any) -> Dict[str, Any]:
        """The fields by name."""
        return {name: getattr(self, name) for name in self.fields()}

    model_dump = dict

    def json(self, **options: Any) -> str:
        """The fields as JSON text."""
        return json.dumps(self.dict(), default=str)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "%s(%s)" % (type(self).__name__, ", ".join("%s=%r" % pair for pair in self.dict().items()))


def is_optional(kind: Any) -> bool:
    """Whether None is a value of a type."""
    arguments: Optional[Tuple[Union[Type[Any], Any], ...]] = getattr(kind, "__args__", None)
    return kind is Any or kind is None or bool(arguments and NONE in arguments)
