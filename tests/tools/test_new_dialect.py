"""`panglot new dialect NAME`: a distribution whose own tests pass, and whose example is served."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.server import panglot, serving


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The new distribution `shop`, and beside it `site`, where it is installed."""
    folder = tmp_path_factory.mktemp("new") / "shop"
    done = panglot("new", "dialect", str(folder))
    assert done.returncode == 0, done.stderr
    install = ("install", "--quiet", "--no-deps", "--no-build-isolation", "--target", str(folder.parent / "site"))
    command = [sys.executable, "-m", "pip", *install, str(folder)]
    installed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert installed.returncode == 0, installed.stderr
    return folder


def environment(folder: Path) -> dict[str, str]:
    return {"PYTHONPATH": str(folder.parent / "site")}


def test_its_own_tests_pass(folder: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:schemathesis", str(folder)],
        env={**os.environ, **environment(folder)}, capture_output=True, text=True, check=False, timeout=120,
        cwd=folder,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout
    assert "4 passed" in ran.stdout


def test_its_example_is_recognised_and_served(folder: Path) -> None:
    with serving(folder / "example", env=environment(folder)) as server:
        assert server.client.post("/ask", json={"question": "spam"}).json() == {"answer": "maps"}
        document = server.client.get("/openapi.json").json()
        content = document["paths"]["/ask"]["post"]["requestBody"]["content"]["application/json"]
        assert content["example"] == {"question": "spam"}


def test_a_script_that_marks_nothing_is_told_where_and_how(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "shop_service.py").write_text("import shop\n")
    done = panglot("serve", str(tmp_path), "--port", "0", env=environment(folder))
    assert done.returncode == 3
    assert "shop_service.py" in done.stderr
    assert "no function is marked with @shop.answers" in done.stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("My-Dialect", "a dialect cannot be called 'My-Dialect'"),
        ("class", "a dialect cannot be called 'class'"),
        ("plain", "there is a dialect 'plain' already"),
        ("json", "'json' is a module of Python's own"),
    ],
)
def test_a_name_that_no_dialect_can_have_is_refused(tmp_path: Path, name: str, message: str) -> None:
    done = panglot("new", "dialect", str(tmp_path / name))
    assert done.returncode == 3
    assert message in done.stderr
    assert not (tmp_path / name).exists()
