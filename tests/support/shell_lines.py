"""The shell lines of a document, run one after the other as a reader would paste them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from support.namespace import unshared

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?:^    \S.*\n(?:\n(?=    \S))?)+", re.MULTILINE)
SHELL = ("", "sh", "console")
FIRST_WORD = re.compile(r"\s*(panglot|curl|python|pip|printf|echo|export|megflow_run|run_with_plugins|[A-Z]+=)")
SERVERS = re.compile(r"(?:[A-Z_]+=\S+ )*(panglot (serve|tiinfer|megflow)|megflow_run|run_with_plugins)\b")

PRELUDE = """
declare -A servers
logs=$(mktemp -d)
trap 'stop_all; rm -rf "$logs"' EXIT
curl() { command curl -sS --fail-with-body --max-time 60 "$@"; }
panglot() {
  if [ "$1" = bench ]; then command panglot "$@" --duration 0.5 --warmup 0.1; else command panglot "$@"; fi
}
stop() { if [ -n "${servers[$1]}" ]; then kill -TERM ${servers[$1]}; wait ${servers[$1]}; unset "servers[$1]"; fi; }
stop_all() { for port in "${!servers[@]}"; do stop $port; done; }
is_ready() {
  local said=$(grep -om1 "is ready on [^ ]*" "$logs/$1" | cut -d/ -f1-3)
  case "$said" in
    *" http"*) command curl -ksf -o /dev/null "${said##* }/v2/health/ready" ;;
    *) [ -n "$said" ] ;;
  esac
}
start() {
  stop $1
  : > "$logs/$1"
  eval "exec env $2" > "$logs/$1" 2>&1 &
  servers[$1]=$!
  for _ in $(seq 600); do
    if is_ready $1; then cat "$logs/$1"; return 0; fi
    kill -0 ${servers[$1]} 2> /dev/null || break
    sleep 0.1
  done
  kill -TERM ${servers[$1]} 2> /dev/null
  wait ${servers[$1]}
  local code=$?
  cat "$logs/$1"
  unset "servers[$1]"
  return $code
}
"""
PORT = re.compile(r"--(?:http_)?port[ =](\d+)")


@dataclass(frozen=True)
class Ran:
    """One line, with what it said and its exit code."""

    line: str
    said: str
    code: int


def commands(text: str) -> list[str]:
    """All lines of the blocks, fenced or indented, that begin with a command; without their comments."""
    lines = []
    for block in _blocks(text):
        if FIRST_WORD.match(block):
            lines += joined(block.strip().splitlines())
    return [re.sub(r"\s+# .*$", "", line) for line in lines]


def typed(text: str) -> list[str]:
    """The lines that a document shows as typed, after `$ `, with what it shows as said to each."""
    return [line[2:] for block in _blocks(text) for line in joined(block.splitlines()) if line.startswith("$ ")]


def _blocks(text: str) -> list[str]:
    places = [(found.start(), found[2]) for found in FENCE.finditer(text) if found[1] in SHELL]
    indented = [(found.start(), re.sub(r"^    ", "", found[0], flags=re.MULTILINE)) for found in _indented(text)]
    return [block for _, block in sorted([*places, *indented])]


def _indented(text: str) -> Iterable[re.Match[str]]:
    """Indented blocks outside of fenced ones, at their places in the text."""
    blank = FENCE.sub(lambda found: re.sub(r"[^\n]", "x", found[0]), text)
    return INDENTED.finditer(blank)


def joined(lines: Sequence[str], prompt: str = "") -> list[str]:
    """Lines with those that continue them. With a prompt, only lines that begin with it are continued."""
    whole: list[str] = []
    for line in lines:
        if whole and whole[-1].startswith(prompt) and not _is_complete(whole[-1]):
            whole[-1] += "\n" + line
        else:
            whole.append(line)
    return whole


def _is_complete(line: str) -> bool:
    if line.rstrip().endswith(("|", "\\")):
        return False
    try:
        shlex.split(line.removeprefix("$ "), comments=True)
    except ValueError:
        return False
    return True


def run_lines(lines: Sequence[str], folder: Path, script: Path, **variables: str) -> list[Ran]:
    """Run the lines in a folder, in one shell, where the network is this machine alone.

    Servers run behind it, each until the next one on its port. What they say before they are ready is what they said.
    """
    text = PRELUDE
    for number, line in enumerate(lines):
        call = f"start {_port(line)} {shlex.quote(line)}" if SERVERS.match(line) else f"eval {shlex.quote(line)}"
        text += f"echo '### {number}'\n{call} 2>&1 < /dev/null; code=$?; echo; echo \"### code $code\"\n"
    script.write_text(text)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PANGLOT_")}
    done = subprocess.run(
        [*unshared("ip link set lo up"), "bash", str(script)], cwd=folder, capture_output=True, text=True, timeout=500,
        env={**kept, "PATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **variables}, check=False,
    )  # fmt: skip
    found = re.findall(r"^### (\d+)\n(.*?)\n?^### code (\d+)$", done.stdout, re.MULTILINE | re.DOTALL)
    assert len(found) == len(lines), done.stdout + done.stderr
    return [Ran(lines[int(number)], said, int(code)) for number, said, code in found]


def _port(line: str) -> str:
    """The port that a line names, or a word for the usual one."""
    named = PORT.search(line)
    return named[1] if named else "usual"
