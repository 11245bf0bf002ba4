"""Performs the steps of a Dockerfile in a folder, where no image can be built.

What is different from a real build, and nothing else:

- `/opt`, `/tmp` and `/package` of the image are folders below `root`; a command that names them is given those.
- The base image is a folder with the `python` that runs the tests, in front of this machine's programs.
- Build arguments are given as `docker build --build-arg` would.
- Everything runs as the user of the tests, not as USER.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shlex
import shutil
import string
import subprocess
import sys
from pathlib import Path

INSIDE = re.compile(r"(?<![\w.])/(opt|tmp|package)(?![\w.])")


class Image:
    """The last stage, as far as it was built; `entrypoint`, `health` and `env` are ready to be run."""

    def __init__(self, dockerfile: Path, context: Path, root: Path, **arguments: str) -> None:
        self.context, self.root, self.arguments = context, root, arguments
        self.ignored = ignored(dockerfile.with_name(dockerfile.name + ".dockerignore"))
        self.before: Path | None = None
        self.seen: list[str] = []
        self.entrypoint: list[str] = []
        self.health: list[str] = []
        self.user = ""
        self.exposed = 0
        for instruction, rest in steps(dockerfile.read_text()):
            self.seen.append(instruction)
            getattr(self, f"do_{instruction.lower()}")(rest)

    def mapped(self, text: str) -> str:
        return INSIDE.sub(lambda found: f"{self.root}/{found[1]}", text)

    def do_from(self, rest: str) -> None:
        """A new stage: only what is copied from the one before will be there."""
        if self.root.exists():
            self.before = self.root.with_name("before")
            self.root.rename(self.before)
        base = self.root / "base"
        base.mkdir(parents=True)
        (self.root / "tmp").mkdir()
        (base / "python").symlink_to(getattr(sys, "_base_executable", sys.executable))
        self.env = {"PATH": f"{base}:/usr/local/bin:/usr/bin:/bin"}
        self.env |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        self.workdir = self.root

    def do_arg(self, rest: str) -> None:
        name, _, default = rest.partition("=")
        if name in self.arguments or default:
            self.env[name] = self.mapped(self.arguments.get(name, default))

    def do_env(self, rest: str) -> None:
        for word in shlex.split(rest):
            name, _, value = word.partition("=")
            self.env[name] = string.Template(self.mapped(value)).substitute(self.env)

    def do_run(self, rest: str) -> None:
        done = self.run(["sh", "-c", self.mapped(rest)], timeout=300)
        assert done.returncode == 0, f"{rest}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"

    def do_copy(self, rest: str) -> None:
        earlier = rest.startswith("--from=build ")
        source, target = json.loads(rest.removeprefix("--from=build "))
        destination = Path(self.mapped(target))
        if earlier:
            assert self.before is not None
            destination.parent.mkdir(parents=True, exist_ok=True)
            (self.before / source.strip("/")).rename(destination)
        elif (self.context / source).is_dir():
            shutil.copytree(self.context / source, destination, ignore=self._ignore, symlinks=True)
        else:
            assert not self._is_ignored(source), f"{source} is not in the build context"
            shutil.copy(self.context / source, destination)

    def _ignore(self, folder: str, names: list[str]) -> set[str]:
        paths = {name: str((Path(folder) / name).relative_to(self.context)) for name in names}
        return {name for name, path in paths.items() if self._is_ignored(path) and not self._is_needed(path)}

    def _is_needed(self, folder: str) -> bool:
        """Whether an exception leads below a folder that is ignored."""
        return any(pattern.startswith(f"!{folder}/") for pattern in self.ignored)

    def _is_ignored(self, path: str) -> bool:
        """The last pattern that fits it, or a folder it lies in, decides."""
        found = False
        above = [path, *map(str, Path(path).parents)]
        for pattern in self.ignored:
            plain = pattern.removeprefix("!").removeprefix("**/")
            fits = any(fnmatch.fnmatch(Path(one).name if "**/" in pattern else one, plain) for one in above)
            found = not pattern.startswith("!") if fits else found
        return found

    def do_workdir(self, rest: str) -> None:
        self.workdir = Path(self.mapped(rest))

    def do_user(self, rest: str) -> None:
        self.user = rest

    def do_expose(self, rest: str) -> None:
        self.exposed = int(rest)

    def do_healthcheck(self, rest: str) -> None:
        self.health = json.loads(rest.partition(" CMD ")[2])

    def do_entrypoint(self, rest: str) -> None:
        self.entrypoint = [self.mapped(word) for word in json.loads(rest)]

    def run(
        self, command: list[str], env: dict[str, str] | None = None, timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, as in a container."""
        return subprocess.run(
            self.found(command), env={**self.env, **(env or {})}, cwd=self.workdir, capture_output=True, text=True,
            timeout=timeout, check=False,
        )  # fmt: skip

    def start(self, env: dict[str, str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.found(self.entrypoint), env={**self.env, **env}, cwd=self.workdir, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip

    def found(self, command: list[str]) -> list[str]:
        """The command with its program looked for in the PATH of the image."""
        program = shutil.which(command[0], path=self.env["PATH"])
        assert program, f"{command[0]} is not in the image"
        return [program, *command[1:]]


def steps(text: str) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile, in order."""
    lines = text.replace("\\\n", " ").splitlines()
    parts = [line.partition(" ") for line in lines if line.strip() and not line.startswith("#")]
    return [(instruction, rest.strip()) for instruction, _, rest in parts]


def ignored(file: Path) -> list[str]:
    return [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
