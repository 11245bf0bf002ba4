from __future__ import annotations
import json
from dataclasses import dataclass
from typing import Any, NamedTuple
try:
    import orjson
except ImportError:
    orjson = None
@dataclass(frozen=True)
class Limits:
    json_bytes: int = 1; json_depth: int = 64; parts: int=64; files: int=32; text_field: int=1; output_bytes: int=1; output_depth: int=1
class File:
    def __init__(self, name, type, bytes): self.name=name; self.type=type; self.bytes=bytes
class Encoded(NamedTuple):
    content_type: str; body: bytes; warning: str = ""
def decode(ct, body, limits):
    if "json" in ct: return orjson.loads(body)
    return File("", ct, bytes(body))
def encode(v, accept="", limits=None, nan="null"):
    if isinstance(v, tuple): return Encoded(v[1], v[0])
    return Encoded("application/json", orjson.dumps(v))
