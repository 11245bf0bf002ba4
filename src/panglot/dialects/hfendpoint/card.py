"""A model's page on the hub: `pipeline_tag` and the first `widget`, at the head of README.md, tell its requests."""

from __future__ import annotations

import mimetypes
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from panglot.errors import StartError
from panglot.packages import yaml_file
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
HEAD = re.compile(r"---[ \t]*\r?\n(.*?\n)---[ \t]*(?:\r?\n|$)", re.DOTALL)
NO_INPUTS = ("example_title", "output", "src", "group")
"""Keys of a sample that are no inputs of the model."""


@dataclass(frozen=True)
class Card:
    """The task of a model, and one sample of its inputs by name."""

    task: str = ""
    sample: dict[str, Any] = field(default_factory=dict)

    @property
    def reasons(self) -> tuple[str, ...]:
        return (f"README.md says pipeline_tag {self.task}",) if self.task else ()


def read(folder: Path) -> Card:
    """The card of a package; an empty one where there is none that can be read."""
    text = content_if_any(folder / "README.md", LARGEST_CARD).decode("utf-8", "replace")
    head = HEAD.match(text)
    if head is None:
        return Card()
    try:
        table = yaml_file.parse(head[1], folder / "README.md").table
    except StartError:
        # The page is for people, and the handler does not need it.
        return Card()
    task, widget = table.get("pipeline_tag"), table.get("widget")
    first = widget[0] if isinstance(widget, list) and widget else {}
    return Card(task if isinstance(task, str) else "", first if isinstance(first, dict) else {})


def api(card: Card, folder: Path, task: str) -> dict[str, Any]:
    """The description of the API, as far as it is known without running the handler."""
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
    sample = {name: value for name, value in card.sample.items() if name not in NO_INPUTS}
    if sample:
        inputs = sample["text"] if set(sample) == {"text"} else sample
    return {"kind": "json", "value": {"inputs": inputs}}
