"""Files of a model that are named by address. They are fetched when the script is loaded, and may have a hash.

    https://example.com/net.params#sha256=9f86d0…   the hash is optional: sha256, sha1, md5, or Qiniu's own etag
    qiniu:///bucket/net.params                      by the download domain that `qiniu_domains` has for the bucket

`proxy_` before the scheme means nothing here: it asks the platform to use its own proxy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from panglot.errors import StartError
from panglot_worker.net import urls
from panglot_worker.net.hosts import AddressRefused, Allowed

ADDRESS = re.compile(r"(?:proxy_)?(?P<scheme>https?|qiniu)://", re.ASCII)
QINIU = re.compile(r"qiniu://(?:[^/@]*@)?(?P<zone>[^/]*)/(?P<path>.+)", re.DOTALL)
HASHES = {"sha256": re.compile("[0-9a-f]{64}"), "sha1": re.compile("[0-9a-f]{40}"), "md5": re.compile("[0-9a-f]{32}"),
          "etag": re.compile("[0-9A-Za-z_=-]{28}")}  # fmt: skip


class Address(NamedTuple):
    """The address of a file. `digest` may be empty. The request for a `private` file is signed."""

    url: str
    algorithm: str = ""
    digest: str = ""
    private: bool = False


def is_address(text: str) -> bool:
    """Whether a text is an address, and no path."""
    return ADDRESS.match(text) is not None


def in_use(options: Mapping[str, Any]) -> Iterator[str]:
    """Every address among the files of a package."""
    named = (options.get("tar_file", ""), *options.get("model_files", {}).values())
    yield from (text for text in (*named, *options.get("custom_files", {}).values()) if is_address(text))


def read(text: str, options: Mapping[str, Any], allowed: Allowed) -> Address:
    """The parts of an address, which is checked like addresses in requests. Raises StartError."""
    plain, _, fragment = text.removeprefix("proxy_").partition("#")
    algorithm, digest = _hash(text, fragment)
    private = plain.startswith("qiniu:") and bool(options.get("owner"))
    url = _of_bucket(plain, options.get("qiniu_domains", {})) if plain.startswith("qiniu:") else plain
    try:
        return Address(urls.parse(url, allowed).url, algorithm, digest, private)
    except AddressRefused as error:
        raise StartError(
            f"{without_query(text)} cannot be fetched: {error}", fix="download it and name the file"
        ) from None


def _hash(text: str, fragment: str) -> tuple[str, str]:
    if not fragment:
        return "", ""
    algorithm, _, digest = fragment.partition("=")
    digest = digest if algorithm == "etag" else digest.lower()
    if algorithm not in HASHES or not HASHES[algorithm].fullmatch(digest):
        known = ", ".join(f"#{name}=..." for name in HASHES)
        raise StartError(f"{without_query(text)}: this is no hash", fix=f"write one of {known}, or none")
    return algorithm, digest


def _of_bucket(text: str, domains: Mapping[str, str]) -> str:
    """The URL of a file in Qiniu's storage. The zone before the bucket may be left out."""
    match = QINIU.fullmatch(text)
    if match is None:
        raise StartError(f"{text}: expected qiniu:///bucket/key")
    bucket, key = match["zone"], match["path"]
    # The first word may be a zone, which stands before the bucket.
    if bucket not in domains:
        bucket, _, key = key.partition("/")
    if bucket not in domains or not key:
        fix = f'say in [evals]: qiniu_domains = {{ "{bucket}" = "https://..." }}, or download it and name the file'
        raise StartError(f"{text}: nothing says where the bucket '{bucket}' is downloaded from", fix=fix)
    domain = str(domains[bucket]).rstrip("/")
    return f"{domain if '://' in domain else 'http://' + domain}/{quote(key)}"


def without_query(text: str) -> str:
    """An address that may be shown, without its query: there are often secrets in it."""
    before, mark, _ = text.partition("?")
    return before + "?..." if mark and is_address(text) else text
