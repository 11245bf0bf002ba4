"""A translated page is no older than its original, and has the same commands."""

from __future__ import annotations

import pytest

from support import pages
from support.server import ROOT
from support.translations import Translation, fingerprint, translations

WHOLE_FOLDERS = ("coming-from", "dialects")
WANTED = {
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
    "docs/architecture.md",
    "docs/compared.md",
    "docs/faq.md",
    "docs/first-five-minutes.md",
    "docs/guides/batching.md",
    "docs/guides/big-machine.md",
    "docs/guides/chat.md",
    "docs/guides/clients.md",
    "docs/guides/debugging.md",
    "docs/guides/deploy.md",
    "docs/guides/errors.md",
    "docs/guides/first-hour.md",
    "docs/guides/gpu-speed.md",
    "docs/guides/gpus.md",
    "docs/guides/jobs.md",
    "docs/guides/keys.md",
    "docs/guides/kubernetes.md",
    "docs/guides/model-files.md",
    "docs/guides/monitoring.md",
    "docs/guides/pictures.md",
    "docs/guides/pools.md",
    "docs/guides/prove-a-migration.md",
    "docs/guides/scale-out.md",
    "docs/guides/security.md",
    "docs/guides/several-models.md",
    "docs/guides/sizing.md",
    "docs/guides/sleep.md",
    "docs/guides/streaming.md",
    "docs/guides/testing.md",
    "docs/guides/typed-inputs.md",
    "docs/guides/upgrade.md",
    "docs/guides/video.md",
    "docs/guides/write-a-dialect.md",
    "docs/guides/yesterdays-traffic.md",
    "docs/how/batching.md",
    "docs/how/fates.md",
    "docs/how/fronts.md",
    "docs/how/limits.md",
    "docs/how/memory.md",
    "docs/how/models.md",
    "docs/how/pools.md",
    "docs/how/ray.md",
    "docs/index.md",
    "docs/install.md",
    "docs/reference/containers.md",
    "docs/reference/contract.md",
    "docs/reference/glossary.md",
    "docs/reference/hostile-http.md",
    "docs/reference/http.md",
    "docs/reference/measuring.md",
    "docs/reference/model-files.md",
    "docs/reference/open-inference-protocol.md",
    "docs/reference/operations.md",
    "docs/reference/pages.md",
    "docs/reference/tools.md",
    "docs/reference/typed.md",
    "docs/reference/video.md",
    "docs/troubleshooting.md",
    "docs/tutorials/chat.md",
    "docs/tutorials/images.md",
    "docs/tutorials/sentiment.md",
    "docs/tutorials/tabular.md",
    "docs/tutorials/video.md",
    *(f"docs/{folder}/{path.name}" for folder in WHOLE_FOLDERS for path in (ROOT / "docs" / folder).glob("*.md")),
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
