"""A request and a response that look like Flask's, for environments without Flask.

They have what public scripts use of Flask's own. Names and meanings are Werkzeug's, so there is little to explain here.
"""

from __future__ import annotations

import io
import json
import urllib.parse
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

Pairs = List[Tuple[str, str]]


class BadRequest(ValueError):
    """The body is not what the script takes it for. The server answers 500 for it, as for every exception of run()."""


class Headers:
    """Headers in their order; names are equal whatever their case."""

    def __init__(self, pairs: Iterable[Tuple[str, Any]] = ()) -> None:
        self._pairs: Pairs = [(name, str(value)) for name, value in pairs]

    def __getitem__(self, name: str) -> str:
        values = self.getlist(name)
        if not values:
            raise KeyError(name)
        return values[0]

    def __setitem__(self, name: str, value: Any) -> None:
        self.remove(name)
        self._pairs.append((name, str(value)))

    def __delitem__(self, name: str) -> None:
        self.remove(name)

    def __contains__(self, name: object) -> bool:
        return bool(self.getlist(str(name)))

    def __iter__(self) -> Iterator[Tuple[str, str]]:
        return iter(self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)

    def __repr__(self) -> str:
        return "Headers(%r)" % self._pairs

    def __str__(self) -> str:
        return "".join("%s: %s\r\n" % pair for pair in self._pairs) + "\r\n"

    def get(self, name: str, default: Any = None, type: Any = None) -> Any:
        values = self.getlist(name)
        return (type(values[0]) if type else values[0]) if values else default

    def getlist(self, name: str) -> List[str]:
        wanted = name.lower()
        return [value for key, value in self._pairs if key.lower() == wanted]

    get_all = getlist

    def add(self, name: str, value: Any, **parameters: Any) -> None:
        more = "".join('; %s="%s"' % (key, text) for key, text in parameters.items())
        self._pairs.append((name, "%s%s" % (value, more)))

    add_header = add

    def set(self, name: str, value: Any) -> None:
        self[name] = value

    def setdefault(self, name: str, value: Any) -> str:
        if name not in self:
            self.add(name, value)
        return self[name]

    def update(self, other: Mapping[str, Any]) -> None:
        for name, value in dict(other).items():
            self[name] = value

    extend = update

    def remove(self, name: str) -> None:
        wanted = name.lower()
        self._pairs = [pair for pair in self._pairs if pair[0].lower() != wanted]

    def keys(self) -> List[str]:
        return [name for name, _ in self._pairs]

    def values(self) -> List[str]:
        return [value for _, value in self._pairs]

    def items(self) -> Pairs:
        return list(self._pairs)

    def to_wsgi_list(self) -> Pairs:
        return list(self._pairs)


class MultiDict(Dict[str, Any]):
    """The first value of each name; `getlist` has all of them."""

    def __init__(self, pairs: Sequence[Tuple[str, Any]] = ()) -> None:
        super().__init__()
        self._lists: Dict[str, List[Any]] = {}
        for name, value in pairs:
            self._lists.setdefault(name, []).append(value)
            self.setdefault(name, value)

    def getlist(self, name: str) -> List[Any]:
        return list(self._lists.get(name, ()))

    def lists(self) -> List[Tuple[str, List[Any]]]:
        return list(self._lists.items())

    def to_dict(self, flat: bool = True) -> Dict[str, Any]:
        return dict(self) if flat else dict(self._lists)

    def get(self, name: str, default: Any = None, type: Any = None) -> Any:
        if name not in self:
            return default
        try:
            return type(self[name]) if type else self[name]
        except ValueError:
            return default


class FileStorage:
    """An uploaded file."""

    def __init__(self, content: bytes, filename: str, name: str, content_type: str) -> None:
        self.stream = io.BytesIO(content)
        self.filename, self.name, self.content_type = filename, name, content_type
        self.mimetype = content_type.partition(";")[0].strip().lower()
        self.content_length = len(content)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.stream)

    def __bool__(self) -> bool:
        return bool(self.filename)

    def __repr__(self) -> str:
        return "<FileStorage: %r (%r)>" % (self.filename, self.content_type)

    def save(self, dst: Any, buffer_size: int = 16384) -> None:
        if hasattr(dst, "write"):
            dst.write(self.stream.read())
            return
        with open(dst, "wb") as file:
            file.write(self.stream.read())


class Request:
    """What `run()` gets with `@rawhttp`."""

    def __init__(self, environ: Mapping[str, Any], parse_form: Any) -> None:
        """`environ` is that of WSGI; `parse_form` makes fields and files of a content type and a body."""
        self.environ = environ
        self.method: str = environ["REQUEST_METHOD"]
        self.path: str = environ["PATH_INFO"].encode("latin-1").decode("utf-8", "replace")
        self.query_string: bytes = environ["QUERY_STRING"].encode("latin-1")
        self.scheme: str = environ["wsgi.url_scheme"]
        self.remote_addr: Optional[str] = environ.get("REMOTE_ADDR")
        self.content_type: Optional[str] = environ.get("CONTENT_TYPE")
        self.headers = Headers(_headers(environ))
        self.stream = environ["wsgi.input"]
        self._parse_form = parse_form
        self._body: Optional[bytes] = None
        self._fields: Optional[Tuple[MultiDict, MultiDict]] = None

    def __repr__(self) -> str:
        return "<Request %r [%s]>" % (self.url, self.method)

    # The address

    @property
    def host(self) -> str:
        return str(self.headers.get("Host", ""))

    @property
    def full_path(self) -> str:
        return "%s?%s" % (self.path, self.query_string.decode("utf-8", "replace"))

    @property
    def host_url(self) -> str:
        return "%s://%s/" % (self.scheme, self.host)

    url_root = root_url = host_url

    @property
    def base_url(self) -> str:
        return self.host_url.rstrip("/") + self.path

    @property
    def url(self) -> str:
        return self.base_url + ("?" + self.query_string.decode("latin-1") if self.query_string else "")

    @property
    def args(self) -> MultiDict:
        text = self.query_string.decode("utf-8", "replace")
        return MultiDict(urllib.parse.parse_qsl(text, keep_blank_values=True))

    @property
    def cookies(self) -> Dict[str, str]:
        pairs = (part.strip().partition("=") for part in self.headers.get("Cookie", "").split(";"))
        return {name: value for name, _, value in pairs if name}

    # The body

    @property
    def mimetype(self) -> str:
        return (self.content_type or "").partition(";")[0].strip().lower()

    @property
    def content_length(self) -> Optional[int]:
        length = self.environ.get("CONTENT_LENGTH")
        return int(length) if length else None

    def get_data(self, cache: bool = True, as_text: bool = False, parse_form_data: bool = False) -> Any:
        if parse_form_data and self._body is None:
            self._load_form()
        if self._body is None:
            body = self.stream.read()
            if cache:
                self._body = body
        else:
            body = self._body
        return body.decode("utf-8", "replace") if as_text else body

    @property
    def data(self) -> bytes:
        """The body; empty where it is a form, which has been read as one by then."""
        content: bytes = self.get_data(parse_form_data=True)
        return content

    @property
    def is_json(self) -> bool:
        media = self.mimetype
        return media == "application/json" or (media.startswith("application/") and media.endswith("+json"))

    @property
    def json(self) -> Any:
        return self.get_json()

    def get_json(self, force: bool = False, silent: bool = False, cache: bool = True) -> Any:
        if not (force or self.is_json):
            if silent:
                return None
            raise BadRequest("the request's Content-Type is not application/json")
        try:
            return json.loads(self.get_data(cache=cache))
        except ValueError as error:
            if silent:
                return None
            raise BadRequest("the body could not be decoded as JSON: %s" % error) from None

    def _load_form(self) -> Tuple[MultiDict, MultiDict]:
        if self._fields is None:
            fields: Pairs = []
            files: List[Tuple[str, FileStorage]] = []
            if self.mimetype in ("multipart/form-data", "application/x-www-form-urlencoded"):
                body = self.stream.read() if self._body is None else self._body
                self._body = b"" if self._body is None else self._body
                fields, uploads = self._parse_form(self.content_type, body)
                files = [(name, FileStorage(data, filename, name, kind)) for name, filename, kind, data in uploads]
            self._fields = MultiDict(fields), MultiDict(files)
        return self._fields

    @property
    def form(self) -> MultiDict:
        return self._load_form()[0]

    @property
    def files(self) -> MultiDict:
        return self._load_form()[1]

    @property
    def values(self) -> MultiDict:
        pairs = [(name, value) for source in (self.args, self.form) for name, all_ in source.lists() for value in all_]
        return MultiDict(pairs)


def _headers(environ: Mapping[str, Any]) -> Iterator[Tuple[str, str]]:
    for key, value in environ.items():
        if key.startswith("HTTP_") and key not in ("HTTP_CONTENT_TYPE", "HTTP_CONTENT_LENGTH"):
            yield key[5:].replace("_", "-").title(), value
        elif key in ("CONTENT_TYPE", "CONTENT_LENGTH") and value:
            yield key.replace("_", "-").title(), value


Body = Union[str, bytes, bytearray, Iterable[Union[str, bytes]], None]


class Response:
    """What a script answers with."""

    default_status = 200
    default_mimetype = "text/html"

    def __init__(
        self,
        response: Body = None,
        status: Union[int, str, None] = None,
        headers: Any = None,
        mimetype: Optional[str] = None,
        content_type: Optional[str] = None,
        direct_passthrough: bool = False,
    ) -> None:
        self.headers = Headers(headers.items() if hasattr(headers, "items") else headers or ())
        text = str(self.default_status if status is None else status)
        self.status_code = int(text.partition(" ")[0])
        if content_type is None and (mimetype is not None or "Content-Type" not in self.headers):
            mimetype = mimetype or self.default_mimetype
            content_type = mimetype + ("; charset=utf-8" if mimetype.startswith("text/") else "")
        if content_type is not None:
            self.headers["Content-Type"] = content_type
        self.response: Any = []
        if isinstance(response, (str, bytes, bytearray)):
            self.set_data(response)
        elif response is not None:
            self.response = response

    @property
    def is_streamed(self) -> bool:
        return not isinstance(self.response, (list, tuple))

    @property
    def content_type(self) -> Optional[str]:
        value: Optional[str] = self.headers.get("Content-Type")
        return value

    @property
    def mimetype(self) -> str:
        return (self.content_type or "").partition(";")[0].strip().lower()

    @property
    def data(self) -> bytes:
        return self.get_data()

    def iter_encoded(self) -> Iterator[bytes]:
        for part in self.response:
            yield part.encode() if isinstance(part, str) else bytes(part)

    def get_data(self, as_text: bool = False) -> Any:
        self.response = list(self.iter_encoded())
        body = b"".join(self.response)
        return body.decode() if as_text else body

    def set_data(self, value: Union[str, bytes, bytearray]) -> None:
        self.response = [value.encode() if isinstance(value, str) else bytes(value)]

    def set_cookie(self, key: str, value: str = "", path: str = "/", **options: Any) -> None:
        more = "".join("; %s=%s" % (name.replace("_", "-"), option) for name, option in options.items() if option)
        self.headers.add("Set-Cookie", "%s=%s; Path=%s%s" % (key, value, path, more))

    @property
    def json(self) -> Any:
        return self.get_json()

    def get_json(self, force: bool = False, silent: bool = False) -> Any:
        return json.loads(self.get_data())
