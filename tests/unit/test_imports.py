"""The import rules of docs/architecture.md, held by the source itself."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.server import serving

SOURCE = Path(__file__).resolve().parents[2] / "src"


def parts(path: Path) -> tuple[str, ...]:
    """The folders of a module inside the source, wherever that lies."""
    return path.relative_to(SOURCE).parts


FRONT = sorted((SOURCE / "panglot").rglob("*.py"))
WORKER = [path for path in sorted((SOURCE / "panglot_worker").rglob("*.py")) if "platform" not in parts(path)]
SHARED = (
    "panglot_worker.clipping",
    "panglot_worker.line.description",
    "panglot_worker.line.encryption",
    "panglot_worker.life.installing",
    "panglot_worker.life.loader",
    "panglot_worker.life.output_pipes",
    "panglot_worker.node.handshake",
    "panglot_worker.node.listing",
    "panglot_worker.files.package_files",
    "panglot_worker.line.calls",
    "panglot_worker.line.wire",
    "panglot_worker.graphs",
    "panglot_worker.net",
    "panglot_worker.tensors.protobuf",
)
"""The frame format, the grammar of graph files, the rules on addresses and on files: each is defined once."""
OPTIONAL_IN_WORKER = {"orjson", "numpy", "cv2", "PIL", "av", "msgpack", "tomli"}


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def imports(path: Path) -> tuple[str, ...]:
    """Absolute names a file imports, anywhere in it."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names += (node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names))
    return tuple(names)


def belongs(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def is_shared(name: str) -> bool:
    """Whether front and worker may both import it: a shared module, what is in it, or a folder on the way to one."""
    return any(belongs(name, part) or belongs(part, name) for part in SHARED)


def test_worker_imports_only_the_standard_library_and_itself() -> None:
    for path in WORKER:
        for name in imports(path):
            top = name.partition(".")[0]
            assert top in sys.stdlib_module_names | {"panglot_worker"} | OPTIONAL_IN_WORKER, f"{path} imports {name}"


def test_worker_is_valid_syntax_for_python_3_8() -> None:
    for path in WORKER:
        ast.parse(path.read_text(), filename=str(path), feature_version=(3, 8))


FACE = SOURCE / "panglot" / "__init__.py"
"""What scripts import where Panglot is installed; it lends them the worker's names, when they are first used."""


def test_front_uses_only_what_it_shares_with_the_worker() -> None:
    for path in [path for path in FRONT if path.name != "inline.py" and path != FACE]:
        for name in imports(path):
            if belongs(name, "panglot_worker"):
                assert is_shared(name), f"{path} imports {name}"


@pytest.mark.parametrize("part", SHARED)
def test_what_is_shared_needs_nothing_of_the_worker_that_is_not(part: str) -> None:
    for path in WORKER:
        if belongs(module_name(path), part):
            names = [name for name in imports(path) if name.startswith("panglot_worker.")]
            others = [name for name in names if not is_shared(name)]
            assert not others, f"{path} imports {others}"


ARRAYS = "panglot.tools.arrays"
"""The one module that may import numpy and pickle, for `check` and `run --save`; its docstring says why."""


def test_front_never_imports_frameworks_or_image_libraries() -> None:
    for path in FRONT:
        forbidden = {"numpy", "PIL", "cv2", "torch", "tensorflow", "paddle", "onnxruntime", "pickle", "ray"}
        if module_name(path) == ARRAYS:
            forbidden -= {"numpy", "pickle"}
        assert not forbidden & {name.partition(".")[0] for name in imports(path)}, path


def test_only_tools_reach_the_module_of_arrays() -> None:
    users = {module_name(path) for path in FRONT if ARRAYS in imports(path)} - {ARRAYS}
    tools = {name for name in users if belongs(name, "panglot.tools")}
    assert users - tools == {
        "panglot.cli.commands.bench",
        "panglot.cli.commands.check",
        "panglot.cli.commands.replay",
        "panglot.cli.commands.run",
    }
    assert {"numpy", "pickle"} <= set(imports(SOURCE / "panglot" / "tools" / "arrays.py"))


def test_yaml_is_imported_where_its_limits_are() -> None:
    users = {path.relative_to(SOURCE).as_posix() for path in [*FRONT, *WORKER] if "yaml" in imports(path)}
    assert users == {"panglot/packages/yaml_file.py"}


def test_a_server_never_loads_numpy() -> None:
    """Nor does a tool before it is used."""
    users = ("panglot.tools.check", "panglot.tools.replay")
    names = [module_name(path) for path in FRONT]
    modules = [name for name in names if not any(belongs(name, user) for user in users)]
    modules = [name for name in modules if name not in (ARRAYS, "panglot.__main__")]
    loaded = loaded_by("import " + ", ".join(modules))
    assert "panglot.web.app" in loaded
    assert not {"numpy", ARRAYS} & loaded


def test_web_reaches_the_engine_only_through_its_interface() -> None:
    for path in [path for path in FRONT if "web" in parts(path)]:
        interface = ("panglot.engine.interface", "panglot.engine.call")
        for name in imports(path):
            if belongs(name, "panglot.engine"):
                assert name == "panglot.engine" or any(belongs(name, part) for part in interface), (
                    f"{path} imports {name}"
                )


def test_engine_knows_nothing_of_the_web() -> None:
    for path in [path for path in FRONT if "engine" in parts(path)]:
        assert not any(belongs(name, "panglot.web") for name in imports(path)), path


def dialects(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if path.is_dir() and path.name != "__pycache__"]


@pytest.mark.parametrize("folder", ["panglot_worker/dialects", "panglot/dialects"])
def test_no_dialect_imports_another(folder: str) -> None:
    package = folder.replace("/", ".")
    found = dialects(SOURCE / folder)
    names = {f"{package}.{path.stem}" for path in found}
    for path in found:
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            others = names - {f"{package}.{path.stem}"}
            assert not any(belongs(name, other) for name in imports(file) for other in others), file


def needed(path: Path, known: set[str]) -> set[str]:
    """The modules of ours that must be whole before this one is: a package only for what it defines itself."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            inner = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in known else str(node.module) for name in inner.values()}
    return found & known


def test_there_are_no_import_cycles() -> None:
    files = {module_name(path): path for path in [*FRONT, *WORKER]}
    graph = {name: needed(path, set(files)) - {name} for name, path in files.items()}
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join([*trail, name])
        if name not in done:
            for other in sorted(graph[name]):
                visit(other, (*trail, name))
            done.add(name)

    for name in graph:
        visit(name, ())


def folder_of(name: str, path: Path) -> str:
    """The folder of ours a module belongs to: a dialect's own, one such as `web`, or, outside of all, the module."""
    folders = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    depth = 3 if folders[1:2] == ["dialects"] else 2
    return ".".join(folders[:depth]) if len(folders) > 1 else name


def test_there_are_no_cycles_between_folders() -> None:
    """Wherever the import stands: in a function, or only for type checkers.

    `panglot` itself lends names of its folders to scripts, when they are first used, and gives all of them the version.
    """
    files = {module_name(path): path for path in [*FRONT, *WORKER] if module_name(path) != "panglot"}
    graph: dict[str, set[str]] = {}
    for name, path in files.items():
        folder = folder_of(name, path)
        others = {folder_of(other, files[other]) for other in inside(path, set(files))} - {folder}
        graph.setdefault(folder, set()).update(others)
    single = {name for name in files if name in graph and files[name].name != "__init__.py"}
    for folder in single:  # modules beside each other are in one folder
        graph[folder] -= single
    while leaves := {folder for folder, others in graph.items() if not others & graph.keys()}:
        for folder in leaves:
            del graph[folder]
    assert graph == {}


ENTANGLED = {
    "panglot": None,
    "panglot.engine": {"pools", "processes", "workers"},
    "panglot_worker": None,
    "panglot_worker.dialects.megflow": {"graph", "servers", "video"},
}
"""Inner folders that may need each other; None: the test above looks at these folders. In the engine a worker's record,
its pool and its process know each other, and in MegFlow the graph, its servers and their videos."""


def test_inner_folders_need_each_other_in_one_direction() -> None:
    """Such as those of `web`: HTTP/2 needs gRPC, gRPC the heads of HTTP/1.1, and none of them the other way round."""
    files = {module_name(path): path for path in [*FRONT, *WORKER]}
    graphs: dict[str, dict[str, set[str]]] = {}
    for name, path in files.items():
        for other in needed(path, set(files)):
            ours, theirs = name.split("."), other.split(".")
            depth = next((at for at, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]), 0)
            pair = ".".join(ours[: depth + 1]), ".".join(theirs[: depth + 1])
            parent = ".".join(ours[:depth])
            looked_at = parent and ENTANGLED.get(parent, ()) is not None
            if looked_at and not set(pair) & files.keys() - folders(files):
                graphs.setdefault(parent, {}).setdefault(pair[0], set()).add(pair[1])
    assert "panglot.web" in graphs
    for parent, graph in graphs.items():
        needing = {folder: {other for other, needs in graph.items() if folder in needs} for folder in graph}
        for links in (graph, needing):
            while ends := [folder for folder in graph if not links[folder] & graph.keys()]:
                for folder in ends:
                    del graph[folder]
        assert {folder.rpartition(".")[2] for folder in graph} == set(ENTANGLED.get(parent) or ()), parent


def folders(files: dict[str, Path]) -> set[str]:
    return {name for name, path in files.items() if path.name == "__init__.py"}


def inside(path: Path, known: set[str]) -> set[str]:
    """The modules of ours that a file imports anywhere."""
    reached = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            reached |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            reached |= {name if name in known else str(node.module) for name in inner}
    return reached & known


def loaded_by(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}; print('\\n'.join(sys.modules))"],
        capture_output=True, text=True, check=True, env={"PYTHONPATH": str(SOURCE)},
    )  # fmt: skip
    return set(done.stdout.split())


def test_importing_panglot_is_light() -> None:
    heavy = {"click", "rich", "uvicorn", "starlette", "asyncio", "orjson", "uvloop"}
    assert not heavy & loaded_by("import panglot")


def test_the_command_line_starts_without_the_server() -> None:
    heavy = {"uvicorn", "starlette", "uvloop", "rich"}
    assert not heavy & loaded_by("import panglot.cli.commands")


def test_help_loads_nothing_that_serves() -> None:
    heavy = {"asyncio", "starlette", "panglot.engine.engine", "panglot.web.models"}
    assert not heavy & loaded_by("from panglot.cli.commands import panglot; panglot(['--help'], standalone_mode=False)")


def test_a_server_without_a_port_for_grpc_loads_nothing_of_it() -> None:
    """Neither its messages nor HTTP/2: what a start imports is what it costs."""
    timed = {"PYTHONPROFILEIMPORTTIME": "1"}
    with serving("tensors", env=timed) as server:
        assert server.client.get("/metrics").status_code == 200
    loaded = {line.rpartition("|")[2].strip() for line in server.lines if "import time:" in line}
    assert "panglot.web.listeners" in loaded
    assert not [name for name in loaded if re.match(r"grpc\b|panglot\.web\.(http2|grpc)", name)]
    with serving("tensors", "--grpc-port", "0", env=timed) as server:
        server.wait_log("import time: .*panglot.web.http2.connection")


def test_importing_the_worker_does_nothing() -> None:
    heavy = {"asyncio", "numpy", "PIL", "cv2"}
    assert not heavy & loaded_by("import panglot_worker.life.loop")


def test_no_pickle_outside_the_handoff() -> None:
    """But for files of arrays, whose pickles are read without running anything in them."""
    for path in [*FRONT, *WORKER]:
        if path.name != "handoff.py" and module_name(path) != ARRAYS:
            assert "pickle" not in {name.partition(".")[0] for name in imports(path)}, path


def test_no_method_is_rebound_at_run_time() -> None:
    """`load` returns the stages, and whoever changes one makes a copy; nobody asks which function a method is."""
    for path in [*FRONT, *WORKER]:
        text = path.read_text()
        assert "method-assign" not in text, path
        assert "__func__" not in text, path


DIALECTS = sorted(path.name for path in dialects(SOURCE / "panglot/dialects"))
WORDS_OF_ALL = ("plain", "bare", "triton")
"""Dialects whose names have another meaning too: a word of English, a server and its protocol."""
SPECIFIC = "|".join([*(name for name in DIALECTS if name not in WORDS_OF_ALL), "mosec", "reqid", "57x"])
WORDS = re.compile(rf"\b({SPECIFIC})\b", re.IGNORECASE)
QUOTED = re.compile("|".join(rf"""["']{name}["']|dialects\.{name}""" for name in WORDS_OF_ALL))
FRAMEWORK = {"export.py", "export_probe.py", "exported_programs.py", "autolog.py", "distributions.py", "environment.py"}
FRAMEWORK |= {path.name for path in WORKER if "runtimes" in parts(path)}
"""Here Paddle is the framework: its module, its files, its log."""


def is_generic(path: Path) -> bool:
    return not any(part in DIALECTS for part in parts(path)) and "graphs" not in parts(path)


def test_nothing_generic_names_a_dialect() -> None:
    for path in filter(is_generic, [*FRONT, *WORKER]):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            named = {word.lower() for word in WORDS.findall(line)} - ({"paddle"} if path.name in FRAMEWORK else set())
            assert not named, f"{path}:{number}: {line.strip()}"
            assert not QUOTED.search(line), f"{path}:{number}: {line.strip()}"
