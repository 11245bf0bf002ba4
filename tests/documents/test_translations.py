"""A translated page is no older than its original, and has the same commands."""

from __future__ import annotations

import pytest

from support import pages
from support.server import ROOT
from support.translations import Translation, fingerprint, translations

IN_ENGLISH_ALONE = {"bentoml", "litserve", "triton"}
COMING_FROM = [path.stem for path in (ROOT / "docs" / "coming-from").glob("*.md")]
WANTED = {
    "README.md",
    "docs/index.md",
    "docs/install.md",
    "docs/first-five-minutes.md",
    "docs/troubleshooting.md",
    "docs/tutorials/tabular.md",
    "docs/guides/batching.md",
    "docs/guides/clients.md",
    "docs/guides/deploy.md",
    "docs/guides/errors.md",
    "docs/guides/first-hour.md",
    "docs/guides/big-machine.md",
    "docs/guides/jobs.md",
    "docs/guides/keys.md",
    "docs/guides/model-files.md",
    "docs/guides/pictures.md",
    "docs/guides/sleep.md",
    "docs/guides/prove-a-migration.md",
    "docs/guides/sizing.md",
    "docs/guides/upgrade.md",
    "docs/guides/yesterdays-traffic.md",
    *(f"docs/coming-from/{name}.md" for name in COMING_FROM if name not in IN_ENGLISH_ALONE),
}


def test_what_is_translated() -> None:
    assert {page.original for page in translations()} == WANTED


@pytest.mark.parametrize("page", translations(), ids=lambda page: page.original)
def test_a_translation_follows_its_original(page: Translation) -> None:
    original = (ROOT / page.original).read_text()
    now = fingerprint(original)
    assert page.fingerprint == now, (
        f"{page.original} has changed since it was translated: bring {page.path} up to date, then write hash: {now}"
    )
    assert blocks(page.path.read_text()) == blocks(original)


def blocks(text: str) -> list[tuple[str, str, tuple[str, ...], str]]:
    return [(block.language, block.title, block.marks, block.text) for block in pages.blocks(text)]
