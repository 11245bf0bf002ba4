"""What a model's own page says about its requests: the task and the samples at the head of its README.md.

The head is YAML. Only two forms of it are read, which nearly all models have: `pipeline_tag: NAME`, and the first
entry of the list `widget`.
"""

from __future__ import annotations

import ast
import mimetypes
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from panglot_worker.files.package_files import UnreadableFile, content_if_any, json_value

JSON = "application/json"
LARGEST_CARD = 1 << 20
LARGEST_EXAMPLE = 65536
AUDIO_TASKS = ("automatic-speech-recognition", "audio-classification", "audio-to-audio")
PICTURE_TASKS = (
    "image-classification", "object-detection", "image-segmentation", "image-to-text", "image-to-image",
    "depth-estimation", "image-feature-extraction", "zero-shot-image-classification",
)  # fmt: skip
SAMPLES: dict[str, Any] = {
    "question-answering": {"question": "Where do I live?", "context": "My name is Clara and I live in Berkeley."},
    "sentence-similarity": {"source_sentence": "That is a happy person", "sentences": ["That is a happy dog"]},
    "text-to-image": "A cat in the snow",
}
REQUEST = {
    "type": "object",
    "properties": {"inputs": {}, "parameters": {"type": "object"}},
    "required": ["inputs"],
}
BINARY = {"type": "string", "format": "binary"}
SENTENCE = "I like you. I love you."
PAIR = re.compile(r"\s*(?:- )?\s*([A-Za-z_]+):\s*(.*)")


@dataclass(frozen=True)
class Card:
    """The task of a model, and one sample of its inputs by name."""

    task: str = ""
    sample: dict[str, str] = field(default_factory=dict)

    @property
    def reasons(self) -> tuple[str, ...]:
        return (f"README.md says pipeline_tag {self.task}",) if self.task else ()


def read(folder: Path) -> Card:
    """The card of a package; an empty one where there is none."""
    lines = content_if_any(folder / "README.md", LARGEST_CARD).decode("utf-8", "replace").splitlines()
    if not lines or lines[0].strip() != "---" or "---" not in (line.strip() for line in lines[1:]):
        return Card()
    head = lines[1 : [line.strip() for line in lines[1:]].index("---") + 1]
    task = next((_plain(line.partition(":")[2]) for line in head if line.startswith("pipeline_tag:")), "")
    return Card(task, _sample(head))


def _sample(head: list[str]) -> dict[str, str]:
    """The first entry of the list `widget`."""
    start = next((number for number, line in enumerate(head) if line.startswith("widget:")), None)
    sample: dict[str, str] = {}
    for line in head[start + 1 :] if start is not None else ():
        if not line.startswith((" ", "-")) or (line.lstrip().startswith("- ") and sample):
            break
        pair = PAIR.fullmatch(line)
        if pair and pair[2]:
            sample[pair[1]] = _plain(pair[2])
    return sample


def _plain(text: str) -> str:
    """A scalar of YAML, with or without quotes."""
    text = text.strip()
    if text[:1] in ("'", '"'):
        try:
            return str(ast.literal_eval(text))
        except (ValueError, SyntaxError):
            return text.strip("'\"")
    return text


def api(card: Card, folder: Path, task: str) -> dict[str, Any]:
    """The description of the API, as far as it is known without running anything."""
    task = task or card.task
    types = [JSON]
    if task in PICTURE_TASKS:
        types = ["image/png", "image/jpeg", JSON]
    elif task in AUDIO_TASKS:
        types = ["audio/wav", "audio/flac", JSON]
    return {
        "request_types": types,
        "request_schema": REQUEST if types == [JSON] else {"anyOf": [BINARY, REQUEST]},
        "response_schema": {},
        "example": _example(card, folder, task),
    }


def _example(card: Card, folder: Path, task: str) -> dict[str, Any]:
    """The request.json of the package, else a picture or sound of it, else the card's sample, else one of the task."""
    try:
        value = json_value(folder / "request.json", LARGEST_EXAMPLE)
        if isinstance(value, dict) and ("inputs" in value or "instances" in value):
            return {"kind": "json", "value": value}
    except (OSError, UnreadableFile):
        pass
    if task in (*PICTURE_TASKS, *AUDIO_TASKS):
        wanted = "image/" if task in PICTURE_TASKS else "audio/"
        for file in sorted(folder.iterdir()):
            kind = mimetypes.guess_type(file.name)[0] or ""
            if kind.startswith(wanted) and file.is_file():
                return {"kind": "file", "type": kind, "name": file.name}
        return {"kind": "file", "type": "image/png" if wanted == "image/" else "audio/wav", "name": ""}
    inputs: Any = SAMPLES.get(task, SENTENCE)
    sample = {name: text for name, text in card.sample.items() if name not in ("example_title", "output", "src")}
    if sample:
        inputs = sample["text"] if set(sample) == {"text"} else sample
    return {"kind": "json", "value": {"inputs": inputs}}
