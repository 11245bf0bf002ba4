"""`panglot package`: the files that put a package into a container, and into a cluster.

Every value that reaches a generated file is checked here against the letters it may consist of, or written as JSON:
none can end its line or its quotes.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shlex
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from panglot import __version__
from panglot.engine.pools.pipeline import divided
from panglot.errors import StartError, near
from panglot.packages.package import Package
from panglot.settings import Settings
from panglot.settings.counts import SINGLE, WorkerCount
from panglot.tools.package import job_volume, wheel

TEMPLATES = Path(__file__).parent / "templates"
DOCKERFILE, IGNORE, COMPOSE = "Dockerfile", "Dockerfile.dockerignore", "compose.yaml"
ALWAYS = {
    DOCKERFILE: "the image",
    IGNORE: "what stays out of it",
    COMPOSE: "docker compose",
}
KUBERAY = "kuberay"
RAY_VERSION = "2.60.0"
"""The version of Ray in images that are nodes of a RayCluster too: the one that was tested."""
LONGEST_RAY = 37
"""Letters of a name to which KubeRay can add -ray-head-svc without cutting it."""
ON_REQUEST = {
    "kubernetes": {
        "kubernetes.yaml": "a Deployment, its Service, autoscaler, disruption budget and network policy",
        "keda.yaml": "the same autoscaling by KEDA",
        "prometheus-operator.yaml": "a ServiceMonitor",
    },
    "kserve": {"kserve.yaml": "a ServingRuntime and an InferenceService"},
    KUBERAY: {"kuberay.yaml": "a RayCluster with token authentication, and a Deployment of the server before it"},
    "monitoring": {"alerts.yaml": "alert rules for Prometheus", "dashboard.json": "a dashboard for Grafana"},
}
"""Files for clusters and for monitoring, by the option that requests them."""
DEPLOY = "deploy"
MARK = "Written by panglot package "
BASE_IMAGE = "python:3.11-slim"
INSIDE = "/package"
SPARE = 15
"""Seconds between the end of the server's drain time and being killed."""
FIND_RAY = 'RUN ["ln", "-s", "/opt/panglot/bin/ray", "/usr/local/bin/ray"]\n'
"""For KubeRay, which starts Ray by a shell that may have forgotten our PATH."""
PRESTOP = 8
"""Seconds during which a stopping pod still gets new connections: without them 191 of 192 were refused."""

NAME = re.compile(r"[a-z]([-a-z0-9]{0,48}[a-z0-9])?")
"""A name for a Service in Kubernetes, with space for a suffix; it is also a valid name of an image."""
PATH = re.compile(r"[\w.+ /-]+")
_HOST = r"[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?(:[0-9]{1,5})?/"
_COMPONENT = r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*"
IMAGE = re.compile(
    rf"({_HOST})?{_COMPONENT}(/{_COMPONENT})*(:[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}})?(@sha256:[0-9a-f]{{64}})?", re.ASCII
)
HEALTH = (
    "import http.client, os, sys; "
    "c = http.client.HTTPConnection('127.0.0.1', int(os.environ['PANGLOT_PORT']), timeout=4); "
    "c.request('GET', '/v2/health/live'); sys.exit(c.getresponse().status != 200)"
)


@dataclass(frozen=True)
class Choices:
    """What the command line says; empty where it says nothing."""

    path: str
    dialect: str = ""
    output: str = ""
    base_image: str = ""
    entrypoint: str = ""
    name: str = ""
    requirements: str = ""
    port: int = 0
    wanted: tuple[str, ...] = ()
    """Which other files to write, keys of ON_REQUEST."""


@dataclass(frozen=True)
class Written:
    files: dict[Path, str]
    """What was written, and what each is for."""
    name: str
    port: str
    build: str
    """The command that builds the image."""
    notes: tuple[str, ...]


def write(package: Package, settings: Settings, choices: Choices) -> Written:
    """Write the files, replacing only what an earlier run wrote. Raises StartError before anything is written."""
    if package.archive is not None:
        raise StartError("this is an archive", file=str(package.archive), fix="unpack it, and name the folder")
    folder = Path(choices.output).resolve() if choices.output else package.root / DEPLOY
    # A build sees nothing but the package's folder.
    own = (folder if folder.is_relative_to(package.root) else package.root / DEPLOY) / wheel.NAME
    values = _values(package, settings, choices, folder, own)
    requested = {file: about for group in choices.wanted for file, about in ON_REQUEST[group].items()}
    if job_volume.is_wanted(settings):
        requested = {file: about for file, about in requested.items() if file not in job_volume.NOT_SCALED}
    chosen = ALWAYS | requested
    bodies = {folder / name: signed(render(_template(name), values), Path(name).suffix).encode() for name in chosen}
    for file in bodies:
        _check_replaceable(file, _is_ours)
    _check_replaceable(own, wheel.is_ours)
    bodies[own] = wheel.build()
    try:
        for file, body in bodies.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(body)
    except OSError as error:
        raise StartError(f"cannot be written: {error.strerror}", file=error.filename or str(folder)) from None
    name, port = values["name"], values["port"]
    paths = [shlex.quote(near(str(path))) for path in (folder / DOCKERFILE, package.root)]
    build = f"docker build -f {paths[0]} -t {name} {paths[1]}"
    files = {folder / file: about for file, about in chosen.items()} | {own: "Panglot itself, for the image"}
    more = job_volume.notes(settings, choices.wanted)
    return Written(files, name, port, build, (*notes(package, settings), *more))


def render(template: str, values: dict[str, str]) -> str:
    """The template with every `@word@` replaced by its value, once: a value is never looked at again."""
    return re.sub(r"@([a-z_]+)@", lambda match: values[match[1]], template)


def _template(name: str) -> str:
    return (TEMPLATES / f"{name}.template").read_text(encoding="utf-8")


def signed(text: str, suffix: str = "") -> str:
    """The text under a first line that shows whether it was changed by hand: a comment, or the first key of JSON."""
    mark = f"{MARK}{__version__} ({_digest(text)})"
    return f'{{ "description": "{mark}",\n{text}' if suffix == ".json" else f"# {mark}\n{text}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def notes(package: Package, settings: Settings) -> tuple[str, ...]:
    """What will be different in the image, in lines."""
    lines = []
    if settings.python:
        lines.append(f"panglot.toml sets python = {settings.python}; in the image the script runs in the image's own")
    if (package.root / ".dockerignore").exists():
        lines.append(f".dockerignore of the package is not read; its lines belong into {IGNORE}")
    if package.installs:
        listed = " ".join(word for words in package.installs for word in words)
        lacks = "the image will lack what the package's own configuration lists"
        lines.append(f"{lacks} ({listed}); write it into requirements.txt")
    links = [link.relative_to(package.root) for link in sorted(_links_outside(package.root))]
    lines += [f"{link} is a link to outside of the package; the image will lack it" for link in links]
    return tuple(lines)


def _links_outside(folder: Path) -> list[Path]:
    links = []
    for path, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in (".git", ".venv", "venv")]
        for name in (*folders, *files):
            file = Path(path) / name
            if file.is_symlink() and not file.resolve().is_relative_to(folder):
                links.append(file)
    return links


def _check_replaceable(file: Path, is_ours: Callable[[Path], bool]) -> None:
    if file.is_symlink() or (file.exists() and not is_ours(file)):
        problem = "panglot package did not write this file, or it was changed since"
        raise StartError(problem, file=str(file), fix="move it away, or choose another --output")


def _is_ours(file: Path) -> bool:
    try:
        head, _, rest = file.read_text(encoding="utf-8").partition("\n")
    except (OSError, UnicodeDecodeError):
        return False
    return MARK in head and f"({_digest(rest)})" in head


# Values


def _values(package: Package, settings: Settings, choices: Choices, folder: Path, wheel_file: Path) -> dict[str, str]:
    requirements = _requirements(package, choices.requirements)
    port = choices.port or settings.port or 8080
    own = _relative(folder, package.root, "--output")
    name = _name(package, choices)
    return {
        **job_volume.values(settings, name, render(_template("autoscaler.part"), {"name": name})),
        "wheel": _checked(wheel_file.name, re.compile(r"[0-9A-Za-z.+_-]+"), "the version"),
        "copy_wheel": json.dumps([_relative(wheel_file, package.root, "--output"), "/tmp/"]),  # noqa: S108  in the image
        "extras": "[otel]" if settings.otel_endpoint else "",
        "name": name,
        "base_image": _checked(choices.base_image or BASE_IMAGE, IMAGE, "--base-image", "such as python:3.11-slim"),
        "entrypoint": _entrypoint(package, choices),
        "health_command": json.dumps(["python", "-c", HEALTH]),
        "port": str(port),
        "own_python": " PANGLOT_PYTHON=" if settings.python else "",
        "copy_requirements": f"COPY {json.dumps([requirements, '/tmp/requirements.txt'])}\n" if requirements else "",  # noqa: S108  in the image
        "install_ray": f' "ray[default,client]=={RAY_VERSION}"' if KUBERAY in choices.wanted else "",
        "find_ray": FIND_RAY if KUBERAY in choices.wanted else "",
        "ray_version": RAY_VERSION,
        "workers_on_ray": str(settings.workers or WorkerCount(1, 4)),
        "install_requirements": " -r /tmp/requirements.txt" if requirements else "",
        "dockerfile_path": shlex.quote(f"{own}/{DOCKERFILE}"),
        "ignored_output": _ignored(own, wheel_file.name),
        "context": json.dumps(_relative(package.root, folder, "the package's folder")),
        "dockerfile": json.dumps(f"{own}/{DOCKERFILE}"),
        "drain": f"{settings.drain:g}",
        "load": f"{settings.load_timeout:g}",
        "grace": str(math.ceil(settings.drain) + SPARE),
        "grace_in_pod": str(PRESTOP + math.ceil(settings.drain) + SPARE),
        "prestop": str(PRESTOP),
        **_resources(settings),
        "start_period": str(math.ceil(settings.load_timeout)),
        "startup_failures": str(math.ceil((settings.load_timeout + SPARE) / 2)),
    }


def _resources(settings: Settings) -> dict[str, str]:
    """Resources of a pod, a guess for each worker: requests for the fewest workers, limits for the most."""
    pools = [plan.workers or settings.workers or SINGLE for plan in divided(settings.pools)]
    least, most = sum(count.awake for count in pools), sum(count.most for count in pools)
    return {"cpu": f"{500 * least}m", "memory": f"{512 * least}Mi", "memory_limit": f"{2 * most}Gi"}


def _checked(value: str, shape: re.Pattern[str], option: str, fix: str = "") -> str:
    if not shape.fullmatch(value):
        raise StartError(f"{option} cannot be {value!r} in a generated file", fix=fix)
    return value


def _relative(path: Path, start: Path, option: str) -> str:
    return _checked(os.path.relpath(path, start), PATH, option, "use letters, digits, spaces and . _ + - only")


def _ignored(own: str, wheel_name: str) -> str:
    """The lines that exclude the files written here from the image, all but the wheel."""
    if own.split("/")[0] == "..":
        return ""
    return (
        f"{own}\n!{own}/{wheel_name}"
        if own != "."
        else "\n".join((*ALWAYS, *(file for files in ON_REQUEST.values() for file in files)))
    )


def _name(package: Package, choices: Choices) -> str:
    """The name of everything that is written, given or made of the package's."""
    name = _given_name(choices.name) if choices.name else _made_name(package)
    if KUBERAY in choices.wanted and len(name) > LONGEST_RAY:
        raise StartError(
            f"the name {name} is too long for KubeRay", fix=f"give a --name of {LONGEST_RAY} letters at most"
        )
    return name


def _given_name(given: str) -> str:
    return _checked(given, NAME, "--name", "use up to 50 small letters, digits and -, a letter first")


def _made_name(package: Package) -> str:
    plain = unicodedata.normalize("NFKD", package.name).encode("ascii", "ignore").decode().lower()
    name = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:50].strip("-") or "model"
    return name if name[0].isalpha() else f"model-{name}"[:50].strip("-")


def _requirements(package: Package, given: str) -> str:
    """The requirements file as the build sees it; empty when there is none."""
    file = Path(given) if given else package.root / "requirements.txt"
    if not file.is_file():
        if given:
            raise StartError("there is no such file", file=given)
        return ""
    if not file.resolve().is_relative_to(package.root):
        raise StartError("the image can only have what is in the package's folder", file=str(file), fix="copy it there")
    return _relative(file.resolve(), package.root, "the name of the requirements file")


def _entrypoint(package: Package, choices: Choices) -> str:
    """The command as a JSON list, which no shell ever sees: the package is named in it as it was to us."""
    own = os.path.relpath(Path(choices.path).resolve(), package.root)
    inside = INSIDE if own == "." or own.startswith("..") else f"{INSIDE}/{own}"
    words = ["panglot", "serve", inside, *(["--dialect", package.dialect] if choices.dialect else [])]
    if _has_unseen(inside):
        raise StartError(f"the script's name cannot be {own!r} in a generated file", fix="give it another name")
    given = choices.entrypoint
    if given:
        try:
            words = shlex.split(given)
        except ValueError as error:
            raise StartError(f"--entrypoint {given!r}: {error}") from None
        if not words or _has_unseen(given):
            raise StartError(f"--entrypoint cannot be {given!r} in a generated file", fix="give a command in one line")
    return json.dumps(words)


def _has_unseen(text: str) -> bool:
    return any(unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") for character in text)
