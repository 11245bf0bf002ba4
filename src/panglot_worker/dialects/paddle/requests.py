"""A request as the inputs of a script: bytes with an ending for what it opens as a file, text for what it reads."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Dict, List, NamedTuple, Union

from panglot_worker.bodies import codec
from panglot_worker.dialects.paddle import contents, pickles
from panglot_worker.errors import ClientError

URLENCODED = "application/x-www-form-urlencoded"
ALIASES = {
    "picture": ("image", "img", "file", "data"),
    "path": ("file", "data", "input", "image"),
    "text": ("text", "data"),
}
"""Names that clients may use for the only input of a script, besides its own."""
NOT_INPUTS = ("logid", "log_id", "clientip", "tensors", "name", "method", "appid")
"""Further fields of requests for Paddle Serving, which are no inputs."""


class Wanted(NamedTuple):
    """An input of the script, as the front read it from its source. `kind`: path, folder or text."""

    name: str
    kind: str
    picture: bool

    @property
    def aliases(self) -> Any:
        return ALIASES["picture" if self.picture else "text" if self.kind == "text" else "path"]


class Upload(NamedTuple):
    """Content for a file that the script opens."""

    content: bytes
    ending: str


Value = Union[str, Upload]


class Reader(NamedTuple):
    """Reads requests: the inputs by name. Every method raises ClientError."""

    wanted: List[Wanted]
    limits: codec.Limits
    allow_pickle: bool = False
    unpickles: bool = False
    """Whether the script's source unpickles anything."""
    given: Dict[str, str] = {}
    """Values from the script's command line, for inputs that a request leaves out."""

    def decode(self, content_type: str, body: codec.Body) -> Dict[str, Value]:
        """The inputs in any body: a file, text, a form or JSON; nothing at all where all of them are given."""
        wanted = self.wanted
        if not len(body):
            if all(entry.name in self.given for entry in wanted):
                return dict(self.given)
            raise ClientError("the request body is empty; send %s" % _description(wanted))
        if content_type.startswith(URLENCODED) and contents.is_picture(bytes(body[:16])):
            # The type that `curl --data-binary @picture` sends when none is given.
            content_type = codec.OCTETS
        sent = codec.decode(content_type, body, self.limits)
        if isinstance(sent, dict):
            return self.from_fields(sent)
        if len(wanted) != 1:
            raise ClientError("send a form, or JSON, with %s" % " and ".join(entry.name for entry in wanted))
        return {wanted[0].name: self._value(sent, wanted[0])}

    def from_pairs(self, keys: Any, values: Any) -> Dict[str, Value]:
        """The inputs of a Paddle Serving request."""
        if not isinstance(keys, list) or not isinstance(values, list) or len(keys) != len(values):
            raise ClientError("key and value must be lists of the same length")
        if not all(isinstance(key, str) for key in keys):
            raise ClientError("key must be a list of text")
        return self.from_fields(dict(zip(keys, values)))

    def from_fields(self, fields: Dict[str, Any]) -> Dict[str, Value]:
        """Match the fields of a request with the script's inputs. Raises ClientError for unknown and missing ones."""
        wanted = self.wanted
        known: Dict[str, Wanted] = {}
        for entry in wanted:
            if len(wanted) == 1:
                known.update(dict.fromkeys(entry.aliases, entry))
            known.update({entry.name: entry, entry.name.replace("_", "-"): entry})
        values: Dict[str, Value] = dict(self.given)
        for name, field in fields.items():
            # A form with one file: its field may have any name that the client's tool gave it.
            only_file = len(fields) == len(wanted) == 1 and isinstance(field, codec.File)
            one_found = known.get(name, wanted[0] if only_file else None)
            if one_found is None:
                if name in NOT_INPUTS:
                    continue
                raise ClientError("there is no input %r; the script takes %s" % (name[:80], _names(wanted)))
            values[one_found.name] = self._value(field, one_found)
        for entry in wanted:
            if entry.name not in values:
                raise ClientError("%s is missing; send %s" % (entry.name, _description(wanted)))
        return values

    def _value(self, sent: Any, wanted: Wanted) -> Value:
        if wanted.kind == "text":
            return _text(sent, wanted)
        if isinstance(sent, codec.File):
            return self._checked(bytes(sent.bytes), sent.name, sent.type, wanted)
        if isinstance(sent, str):
            return self._checked(_from_base64(sent, wanted), "", "", wanted)
        raise ClientError("%s must be a file, or base64 text in JSON" % wanted.name)

    def _checked(self, content: bytes, name: str, media: str, wanted: Wanted) -> Upload:
        """The content with the ending its kind of file has, if the script may want it."""
        if not content:
            raise ClientError("%s is empty" % wanted.name)
        ending = contents.ending(content, name, media)
        is_array = ending in (".npy", ".npz")
        if wanted.picture and not contents.is_picture(content) and not is_array:
            raise ClientError("%s is not an image: not JPEG, PNG, WebP, or another known format" % wanted.name)
        if not wanted.picture or is_array:
            pickled = pickles.holds(content, ending, wanted.name, self.unpickles)
            if pickled and not self.allow_pickle:
                raise ClientError("%s %s" % (wanted.name, pickles.REFUSED))
        return Upload(content, ending or (".jpg" if wanted.picture else ".bin"))


def _names(wanted: List[Wanted]) -> str:
    return " and ".join(entry.name for entry in wanted) or "nothing that a request could hold"


def _description(wanted: List[Wanted]) -> str:
    if len(wanted) != 1:
        return "a form with %s" % _names(wanted)
    only = wanted[0]
    if only.kind == "text":
        return 'text, or JSON {"%s": "..."}' % only.name
    what = "an image" if only.picture else "a file"
    return '%s, a form with it as %s, or JSON {"%s": "<base64>"}' % (what, only.name, only.name)


def _text(sent: Any, wanted: Wanted) -> str:
    if isinstance(sent, str):
        return sent
    if isinstance(sent, codec.File):
        try:
            return bytes(sent.bytes).decode("utf-8")
        except UnicodeDecodeError:
            raise ClientError("%s must be text in UTF-8" % wanted.name) from None
    raise ClientError("%s must be text" % wanted.name)


def _from_base64(text: str, wanted: Wanted) -> bytes:
    if text.startswith("data:"):
        text = text.partition(",")[2]
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise ClientError("%s is not valid base64" % wanted.name) from None
