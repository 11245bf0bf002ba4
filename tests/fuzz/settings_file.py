"""panglot.toml: any bytes give settings of the declared types, or one line that names the file and the line in it."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from fuzz.start_errors import one_line
from panglot import dialects
from panglot.dialects.evals.detect import detect
from panglot.errors import StartError
from panglot.settings import Settings, resolving, table_of
from panglot.settings.counts import WorkerCount

EVAL = """
def create_net(configs):
    return {}, 0, ""


def net_inference(model, reqs):
    return [], 0, ""
"""
PLAIN, EVALS = dialects.scope("plain"), dialects.scope("evals")
TYPES: dict[str, type | tuple[type, ...]] = {
    "int": int, "size": int, "float": (int, float), "seconds": (int, float), "bool": bool, "str": str, "folder": str,
    "fronts": int, "words": tuple, "hosts": tuple, "origins": tuple, "pools": dict, "workers": WorkerCount,
    "amounts": Mapping, "ports": tuple, "devices": str,
}  # fmt: skip

WORDS = [
    *[name.encode() + b" = " for name in table_of(EVALS.settings)],
    *rb"""= [ ] { } , " ' # . - + _ : [[ ]] ''' \n \u0000 true false inf -inf nan 0 1 -1 1e400 0x10 1_000""".split(),
    *rb"""64MiB 30s 2m x [evals] [pools] preprocess inference postprocess workers device tar_file""".split(),
    *rb"""platform_codes model_files custom_files custom_params app batch_size""".split(),
    *[b"\n", b"\r\n", b" ", b"\t", b"\0", b"\xff", b"1979-05-27", b"07:32:00", b"9" * 20, "é".encode(), b'"""'],
    b"max_batch = 8\n",
    b'timeout = "30s"\n',
    b'[evals]\nbatch_size = 4\nmodel_files = { a = "b" }\n',
    b"[pools]\npreprocess = 2\n",
    b'workers = "1:8"\n',
    b'[ray]\naddress = "auto"\nworker_resources = { cpu = 1 }\nagent_ports = "1-2"\n',
]


@contextlib.contextmanager
def checking() -> Iterator[Callable[[bytes], None]]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "eval.py").write_text(EVAL)
        yield lambda data: check(Path(folder, "panglot.toml"), data)


def check(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    for dialect in (PLAIN, EVALS):
        try:
            package = detect(file.parent, {}) if dialect is EVALS else None
            chosen = package.defaults if package is not None else {}
            check_settings(resolving.resolve({}, {}, file, chosen, dialect).settings)
        except StartError as error:
            one_line(error, file)


def check_settings(settings: Settings) -> None:
    for name, about in table_of(type(settings)).items():
        value = getattr(settings, name)
        assert isinstance(value, TYPES[about.metadata["kind"]]), name
        assert resolving.check(about, value) == value
