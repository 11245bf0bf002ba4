"""Fuzz the targets for a while each, guided by coverage: `python tests/fuzz/run.py SECONDS [TARGET ...]`.

Inputs that reached something new are kept in .fuzz/TARGET and tried first the next time; one that breaks the promise of
its target is left as .fuzz/TARGET-crash-... and ends the run.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
KEPT = ROOT / ".fuzz"
TARGETS = (
    "json_text", "multipart_form", "wire_frames", "graph_file", "settings_file", "http_head", "http_socket",
    "http2_frames", "tensor_request", "tensor_message", "model_input", "json_fields",
)  # fmt: skip
LONGEST = 4096
HANG = 20
MEMORY = 2048
"""The longest input, the seconds after which one hangs, and the MiB it may take."""


def main(arguments: Sequence[str]) -> int:
    seconds, *targets = arguments
    for target in targets or TARGETS:
        print(f"{target}: {seconds} s", flush=True)
        if subprocess.run([sys.executable, __file__, "--one", target, seconds], check=False).returncode:
            return 1
    return 0


def fuzz(target: str, seconds: str) -> int:
    """Fuzz one target, in a child: the fuzzer ends its process without a word, and targets have to be closed."""
    import atheris

    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
    with atheris.instrument_imports(include=["panglot", "panglot_worker", "tomllib"]):
        module = importlib.import_module(f"fuzz.{target}")
    corpus, kept = HERE / "corpus" / getattr(module, "CORPUS", target), KEPT / target
    kept.mkdir(parents=True, exist_ok=True)
    words = KEPT / f"{target}.dict"
    words.write_text("".join(f'"{spelt(word)}"\n' for word in module.WORDS))
    options = {
        "max_total_time": seconds, "max_len": LONGEST, "timeout": HANG, "rss_limit_mb": MEMORY, "dict": words,
        "artifact_prefix": KEPT / f"{target}-", "print_final_stats": 1,
    }  # fmt: skip
    with module.checking() as check:
        child = os.fork()
        if not child:
            arguments = [f"-{name}={value}" for name, value in options.items()]
            atheris.Setup([target, *arguments, str(kept), str(corpus)], check)
            atheris.Fuzz()
        _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def spelt(word: bytes) -> str:
    return "".join(chr(byte) if chr(byte).isalnum() and byte < 128 else f"\\x{byte:02x}" for byte in word)


if __name__ == "__main__":
    if sys.argv[1] == "--one":
        sys.exit(fuzz(*sys.argv[2:]))
    sys.exit(main(sys.argv[1:]))
