"""Progress bars, read from what a script prints."""

from __future__ import annotations

import pytest

from panglot_worker.items.bars import DrawnBar, last_bar

DRAWN = {
    "\r  0%|          | 0/8 [00:00<?, ?it/s]": DrawnBar(0.0, "0/8"),
    "\r 12%|#2        | 1/8 [00:00<00:01,  8.11it/s]": DrawnBar(0.125, "1/8"),
    "\r  0%|  | 0/4 [00:00<?, ?it/s]\r 50%|█ | 2/4 [00:01<00:01,  1.99it/s]": DrawnBar(0.5, "2/4"),
    "\rdrawing:  50%|█ | 2/4 [00:01<00:01,  1.99it/s]": DrawnBar(0.5, "drawing 2/4"),
    "\rwith: two:  50%|█ | 2/4": DrawnBar(0.5, "with: two 2/4"),
    " 37%|\x1b[32m███▋\x1b[0m      | 1.20k/3.21k [00:01<00:02]\nand a line": DrawnBar(0.37, "1.20k/3.21k"),
    "a line\n100%|██████████| 7/7 [00:02<00:00]\n": DrawnBar(1.0, "7/7"),
    "\r 99%|## | 9/0 [00:02<00:00]": DrawnBar(0.99, "9/0"),
    "\r 40%|####      |": DrawnBar(0.4, ""),
}
NONE = ["", "50%", "half | of it", "%|", "x%| |", "1000%| | 3/4", "\r 40%|### cut"]


@pytest.mark.parametrize("text", DRAWN)
def test_the_last_bar_counts(text: str) -> None:
    assert last_bar(text) == DRAWN[text]


@pytest.mark.parametrize("text", NONE)
def test_other_texts_are_none(text: str) -> None:
    assert last_bar(text) is None
