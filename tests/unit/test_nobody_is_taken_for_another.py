"""Every package of the tests, examples and templates is recognised by its own dialect and by no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from panglot import dialects
from panglot.errors import StartError
from panglot.tools.scaffold import create
from support.server import PACKAGES, ROOT, panglot

EXAMPLES = {"digits": "plain"}
"""Examples whose folder is not called like their dialect."""
CONTRACT = {"graph": "megflow"}
"""Packages of the contract suite, likewise."""
INSIDE = {"megflow": "digits"}
"""What of an example is the package, where that is not all of it."""
OUTSIDE = ("acme",)
"""Those of dialects that other distributions bring."""


def own_dialect(folder: Path) -> str:
    """The dialect that the name of a test package begins with; all others are plain, or wrong on purpose."""
    return next((name for name in dialects.known() if folder.name.startswith(f"{name}_")), "")


PACKAGES_BY_DIALECT = [(folder, own_dialect(folder)) for folder in sorted(PACKAGES.iterdir()) if folder.is_dir()]
FOLDERS = [
    *((folder, name) for folder, name in PACKAGES_BY_DIALECT if name),
    *(
        (folder / INSIDE.get(folder.name, ""), EXAMPLES.get(folder.name, folder.name))
        for folder in sorted((ROOT / "examples").iterdir())
        if folder.is_dir()
    ),
    *(
        (folder, CONTRACT.get(folder.name, folder.name.partition("_")[0]))
        for folder in sorted((ROOT / "tests" / "contract" / "packages").iterdir())
        if folder.is_dir() and folder.name not in OUTSIDE
    ),
]
BROKEN = [
    (folder, own_dialect(folder))
    for folder in sorted((PACKAGES / "broken").iterdir())
    if folder.is_dir() and own_dialect(folder)
]
"""Wrong packages, which are still somebody's."""
TEMPLATES = [
    (name, kind)
    for name, dialect in dialects.known().items()
    if dialect.has("templates")
    for kind in dialect.load("templates").TEMPLATES
]


def recognisers(path: Path) -> list[str]:
    """The dialects that would take a path, as far as they look for something: not those that take what is left."""
    found = []
    for name, dialect in dialects.known().items():
        module = dialect.load("detect")
        if getattr(module, "FALLBACK", False) or getattr(module, "YIELDS", False):
            continue
        try:
            is_one = dialects._detect(dialect, path.resolve(), {}) is not None
        except StartError:
            # A package that is recognised and wrong is recognised.
            is_one = True
        found += [name] if is_one else []
    return found


def served(folder: Path) -> Path:
    """What of a folder a user would name: a graph, where it is a folder of graphs."""
    graphs = sorted(folder.glob("*.toml"))
    is_graphs = graphs and not (folder / "panglot.toml").exists()
    return graphs[0] if is_graphs and not list(folder.glob("config*")) else folder


def check(path: Path, own: str) -> None:
    module = dialects.find(own).load("detect")
    takes_what_is_left = getattr(module, "FALLBACK", False) or getattr(module, "YIELDS", False)
    assert recognisers(path) == ([] if takes_what_is_left else [own])
    assert dialects.discover(path).dialect == own


@pytest.mark.parametrize(("folder", "own"), FOLDERS, ids=[str(folder.relative_to(ROOT)) for folder, _ in FOLDERS])
def test_a_package_is_recognised_by_its_own_dialect_alone(folder: Path, own: str) -> None:
    check(served(folder), own)


@pytest.mark.parametrize(("folder", "own"), BROKEN, ids=[folder.name for folder, _ in BROKEN])
def test_a_wrong_package_is_recognised_by_its_own_dialect_alone(folder: Path, own: str) -> None:
    assert recognisers(folder) == [own]


def test_a_setting_that_one_dialect_has_says_which_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.json").write_text('{"architectures": ["BertForSequenceClassification"]}')
    monkeypatch.setenv("HF_TASK", "text-classification")
    assert dialects.discover(tmp_path).dialect == "hfendpoint"
    assert dialects.discover(tmp_path, given={"flavor": "huggingface"}).dialect == "sagemaker"


DOUBTFUL = {
    "handler.py": "class EndpointHandler:\n    def __init__(self, path):\n        pass\n\n"
    "    def __call__(self, data):\n        return data\n",
    "app.py": "import allspark\n\n\nclass Mine(allspark.BaseProcessor):\n    def process(self, data):\n"
    "        return data, 200\n\n\nMine().run()\n",
}
"""Two scripts, each the whole package of another platform."""


def test_a_real_doubt_ends_with_one_line_that_names_every_candidate(tmp_path: Path) -> None:
    for name, text in DOUBTFUL.items():
        (tmp_path / name).write_text(text)
    done = panglot("serve", str(tmp_path), "--port", "0", seconds=60)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.splitlines() == [
        f"error: {tmp_path}: this could be hfendpoint (handler.py:1 defines class EndpointHandler) "
        "or paieas (app.py:4 defines class Mine(allspark.BaseProcessor)) (fix: say which: --dialect hfendpoint)"
    ]
    for name in ("hfendpoint", "paieas"):
        assert dialects.discover(tmp_path, name).dialect == name


@pytest.mark.parametrize(("own", "kind"), TEMPLATES, ids=[f"{name} {kind}".strip() for name, kind in TEMPLATES])
def test_a_template_is_recognised_by_its_own_dialect_alone(own: str, kind: str, tmp_path: Path) -> None:
    create(own, tmp_path / "mine", False, kind)
    check(served(tmp_path / "mine"), own)


@pytest.mark.parametrize("folder", [folder for folder, name in PACKAGES_BY_DIALECT if not name], ids=lambda f: f.name)
def test_what_is_of_no_platform_is_taken_by_none(folder: Path) -> None:
    assert recognisers(folder) == []
