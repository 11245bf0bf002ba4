"""Makes small models for the handlers that TorchServe brings: `python torchserve_models.py FOLDER`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

NET = """
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.EmbeddingBag(9, 2)

    def forward(self, text, offsets):
        return self.embedding(text, offsets)
"""
WORDS = ("i", "am", "cafe", "do not", "do", "not", "i am", "am cafe", "cafe do")


class Colors(torch.nn.Module):
    """Ten classes, by the means of a picture's three colors."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        means = images.mean(dim=(2, 3))
        return torch.cat([means, means * 2.0, -means, means[:, :1] * 0.5], dim=1)


class Boxes(torch.nn.Module):
    """Two boxes, of which one is sure."""

    def forward(self, images: torch.Tensor) -> list[dict[str, torch.Tensor]]:
        corners = torch.tensor([[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]]) * images.mean()
        return [{"boxes": corners, "labels": torch.tensor([1, 2]), "scores": torch.tensor([0.9, 0.2])}]


class Segments(torch.nn.Module):
    """Three classes for each pixel of a corner: its colors."""

    def forward(self, images: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"out": images[:, :, :4, :4]}


def scripted(model: torch.nn.Module, folder: Path, labels: object = None) -> None:
    folder.mkdir()
    torch.jit.script(model).save(str(folder / "model.pt"))
    if labels is not None:
        (folder / "index_to_name.json").write_text(json.dumps(labels))


def texts(folder: Path) -> None:
    """Two classes, by the words of a text and their pairs."""
    folder.mkdir()
    (folder / "net.py").write_text(NET)
    torch.save({"embedding.weight": torch.arange(18.0).reshape(9, 2).sin()}, folder / "weights.pth")
    torch.save({word: number for number, word in enumerate(WORDS)}, folder / "source_vocab.pt")
    (folder / "index_to_name.json").write_text('{"0": "cold", "1": "warm"}')


if __name__ == "__main__":
    where = Path(sys.argv[1])
    scripted(
        Colors(), where / "image_classifier", {str(number): [f"n{number}", f"class {number}"] for number in range(10)}
    )
    scripted(Boxes(), where / "object_detector", {"object_type_names": ["back", "cat", "dog"]})
    scripted(Segments(), where / "image_segmenter")
    texts(where / "text_classifier")
