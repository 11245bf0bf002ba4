"""Small functions of the toolkit that scripts use."""

import re
from typing import Any, Mapping

from panglot_worker.dialects.sagemaker.bodies import parse_accept

CONTENT_TYPE_REGEX = re.compile("^[Cc]ontent-?[Tt]ype")


def read_file(path: str, mode: str = "r") -> Any:
    with open(path, mode) as file:
        return file.read()


def write_file(path: str, data: Any, mode: str = "w") -> None:
    with open(path, mode) as file:
        file.write(data)


def retrieve_content_type_header(request_property: Mapping[str, Any]) -> Any:
    """The first header whose name is one of content types; None where there is none."""
    for key in request_property:
        if CONTENT_TYPE_REGEX.match(key):
            return request_property[key]
    return None


def remove_crlf(illegal_string: str) -> str:
    return illegal_string.replace("\r", " ").replace("\n", " ")


__all__ = ["parse_accept", "read_file", "remove_crlf", "retrieve_content_type_header", "write_file"]
