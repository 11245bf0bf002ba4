"""Cached virtual environments with the requirements of a package, made by the interpreter that would run the script.

Packages of that interpreter are visible in the environment. Packages of the environment win over them, as on platforms
that install on top of an image. The front makes environments on its own machine; on a node a separate process makes
them, before the first worker starts.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
from typing import Callable, Dict, Iterator, List, NamedTuple, Sequence, Tuple

DONE = "panglot-installed.json"
SHOWN = 12
"""Lines of pip's output shown when it fails."""
PATHS = """
import json, sys
path = [entry for entry in sys.path if entry.endswith("-packages")]
print(json.dumps({"version": sys.version, "path": path}))
"""
"""Prints where an interpreter has its packages."""
Say = Callable[[str], None]


class InstallError(Exception):
    """An environment cannot be made. One line says why; `lines` are the last of pip's output."""

    def __init__(self, problem: str, lines: Sequence[str] = ()) -> None:
        super().__init__(problem)
        self.lines = lines


class Wish(NamedTuple):
    """The requirements of a package."""

    name: str
    folder: str
    """Where `pip` is run."""
    commands: Sequence[Sequence[str]]
    """The arguments of every `pip install`, in order."""
    files: Dict[str, str]
    """Texts of files that are named in the commands and are not in the folder."""


def environment(wish: Wish, python: str, cache: str, say: Say) -> str:
    """The interpreter of the environment, which is made unless it is there already. Raises InstallError."""
    version, path = version_and_path(python)
    folder = os.path.join(cache, environment_name(wish, python, version))
    try:
        os.makedirs(folder, exist_ok=True)
        # DONE is looked for under the lock: a process that has waited here finds the finished environment.
        with _locked(folder):
            if not os.path.isfile(os.path.join(folder, DONE)):
                _build(folder, python, path, wish, say)
    except OSError as error:
        raise InstallError("no environment can be made in %s: %s" % (folder, error)) from None
    return os.path.join(folder, "venv", "bin", "python")


def cache_folder(kind: str = "environments") -> str:
    """Where files of a kind are stored that can be made again."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "panglot", kind)


def version_and_path(python: str) -> Tuple[str, List[str]]:
    """The version of an interpreter, and the folders its packages are in. Raises InstallError."""
    try:
        done = subprocess.run([python, "-c", PATHS], capture_output=True, timeout=60, check=True)
        answer = json.loads(done.stdout.decode())
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise InstallError("%s is no Python interpreter: %s" % (python, error)) from None
    return answer["version"], answer["path"]


def environment_name(wish: Wish, python: str, version: str) -> str:
    """The name of the folder: it depends on the interpreter, the commands, and the files they name."""
    words = [tuple(command) for command in wish.commands]
    # Both the path and where it leads: an interpreter in another virtual environment is often the same file.
    digest = hashlib.sha256(("%s %s %s %s" % (os.path.realpath(python), python, version, words)).encode())
    for command in wish.commands:
        file = os.path.join(wish.folder, command[-1])
        if command[-1] in wish.files:
            digest.update(wish.files[command[-1]].encode())
        elif os.path.isfile(file):
            with open(file, "rb") as content:
                digest.update(content.read())
    plain = re.sub(r"[^A-Za-z0-9]+", "-", wish.name).strip("-")[:40] or "package"
    return "%s-%s" % (plain, digest.hexdigest()[:16])


@contextlib.contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Hold the lock of a folder: one process builds, and others wait for the environment."""
    with open(os.path.join(folder, "lock"), "w") as file:
        # The kernel drops the lock with the process, so that a killed installation blocks nobody.
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(folder: str, python: str, path: List[str], wish: Wish, say: Say) -> None:
    venv = os.path.join(folder, "venv")
    # Without DONE, a folder is the rest of an interrupted installation.
    shutil.rmtree(venv, ignore_errors=True)
    say("making an environment for %s in %s" % (wish.name, venv))
    _run([python, "-m", "venv", venv], wish.folder, "a virtual environment cannot be made")
    inner = os.path.join(venv, "bin", "python")
    # Not --system-site-packages: if `python` is in a virtual environment itself, that would show its base alone.
    with open(os.path.join(version_and_path(inner)[1][0], "panglot-base.pth"), "w", encoding="utf-8") as base:
        base.write("\n".join(path) + "\n")
    for command in wish.commands:
        line = "pip install " + " ".join(map(shlex.quote, command))
        say(line)
        words = [_local(word, wish, folder) for word in command]
        pip = [inner, "-m", "pip", "--disable-pip-version-check", "install", *words]
        _run(pip, wish.folder, "%s failed" % line)
    # Last of all: this file is the proof that nothing was interrupted.
    with open(os.path.join(folder, DONE), "w", encoding="utf-8") as done:
        json.dump({"python": python, "commands": wish.commands}, done)


def _local(word: str, wish: Wish, folder: str) -> str:
    """The word of a command. Where it names a file that was sent as text: the path of the file, written here."""
    if word not in wish.files:
        return word
    path = os.path.join(folder, os.path.basename(word))
    with open(path, "w", encoding="utf-8") as file:
        file.write(wish.files[word])
    return path


def _run(command: List[str], folder: str, problem: str) -> None:
    # Installing a package may run its code, which must not see the tokens of this server.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PANGLOT_")}
    done = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        env=environment,
    )  # fmt: skip
    if done.returncode:
        lines = [line for line in done.stdout.decode("utf-8", "replace").splitlines() if line.strip()]
        reason = next((line for line in reversed(lines) if line.startswith("ERROR:")), lines[-1] if lines else "")
        shown = reason[7:] if reason.startswith("ERROR: ") else reason
        raise InstallError("%s: %s" % (problem, shown), lines[-SHOWN:])
