"""The Hugging Face container: a pipeline of transformers by HF_TASK or the model's architecture."""

from __future__ import annotations

import base64
import csv
import io
import json
import os
import sys
from typing import Any, Callable, Dict, Tuple, Union

from panglot_worker.dialects.base import Answer, Package, Problem
from panglot_worker.dialects.sagemaker import answers, bodies
from panglot_worker.dialects.sagemaker.bodies import UnsupportedFormatError
from panglot_worker.dialects.sagemaker.containers.generic import Container, said
from panglot_worker.dialects.sagemaker.libraries import library
from panglot_worker.errors import ScriptError

PICTURES = ("image/jpeg", "image/png", "image/tiff", "image/bmp", "image/gif", "image/webp", "image/x-image")
SOUNDS = (
    "audio/x-flac", "audio/flac", "audio/mpeg", "audio/wave", "audio/wav", "audio/x-wav", "audio/ogg", "audio/x-audio",
)  # fmt: skip
TASKS = {
    "TapasForQuestionAnswering": "table-question-answering",
    "ForQuestionAnswering": "question-answering",
    "ForTokenClassification": "token-classification",
    "ForSequenceClassification": "text-classification",
    "ForMultipleChoice": "multiple-choice",
    "ForMaskedLM": "fill-mask",
    "ForCausalLM": "text-generation",
    "ForConditionalGeneration": "text2text-generation",
    "MTModel": "text2text-generation",
    "EncoderDecoderModel": "text2text-generation",
    "GPT2LMHeadModel": "text-generation",
    "T5WithLMHeadModel": "text2text-generation",
}
"""The task of a model whose architecture ends so; of several, the last wins."""
BY_FEATURES = (
    "automatic-speech-recognition", "image-segmentation", "image-classification", "audio-classification",
    "object-detection", "zero-shot-image-classification",
)  # fmt: skip
NO_HEADER = (
    "You need to provide the correct CSV with Header columns to use it with the inference toolkit default handler."
    " : 400"
)
"""The toolkit's sentence, with the status that its exceptions have in their text."""


class HuggingFace(Container):
    name = "huggingface"
    takes_arrays = False

    def __init__(self, package: Package) -> None:
        super().__init__(package)
        self.default_accept = bodies.JSON

    def model_fn(self, model_dir: str) -> Any:
        """The pipeline of the folder's model. Raises ScriptError where nothing tells its task."""
        task = os.environ.get("HF_TASK") or self._task(model_dir)
        try:
            pipeline = library("transformers").pipeline
        except ImportError as error:
            if error.name != "transformers":
                raise
            problem = "without model_fn the model is a pipeline for %s, which needs transformers" % task
            raise ScriptError(
                problem, model_dir, fix="pip install transformers, for the interpreter of --python"
            ) from None
        kind = "feature_extractor" if task in BY_FEATURES else "tokenizer"
        torch: Any = sys.modules.get("torch")
        device = 0 if torch is not None and torch.cuda.is_available() else -1
        return pipeline(task=task, model=model_dir, device=device, **{kind: model_dir})

    def _task(self, model_dir: str) -> str:
        if os.path.isfile(os.path.join(model_dir, "model_index.json")):
            return "text-to-image"
        try:
            with open(os.path.join(model_dir, "config.json"), encoding="utf-8") as file:
                architecture = str((json.load(file).get("architectures") or [""])[0])
        except (OSError, ValueError, AttributeError):
            architecture = ""
        tasks = [task for ending, task in TASKS.items() if architecture.endswith(ending)] if architecture else []
        if not tasks:
            problem = "nothing tells the task of the model: its architecture is %s" % (architecture or "unknown")
            raise ScriptError(problem, model_dir, fix="set HF_TASK, such as HF_TASK=text-classification")
        os.environ["HF_TASK"] = tasks[-1]
        return tasks[-1]

    def input_fn(self, data: Any, content_type: Any) -> Any:
        read = READERS.get(content_type)
        if read is None:
            raise UnsupportedFormatError(content_type)
        return read(data)

    def predict_fn(self, data: Any, model: Any) -> Any:
        """The pipeline's result for `inputs`, or for the whole body, with the `parameters`."""
        inputs = data.pop("inputs", data)
        parameters = data.pop("parameters", None)
        return model(inputs, **parameters) if parameters is not None else model(inputs)

    def output_fn(self, prediction: Any, accept: str) -> Tuple[Any, str]:
        """The body by exactly the type that the client accepts. Raises UnsupportedFormatError."""
        if accept == bodies.JSON:
            return written(prediction), accept
        if accept == bodies.NPY:
            return bodies.array_to_npy(prediction), accept
        if accept == bodies.CSV:
            return table(prediction), accept
        if accept in PICTURES:
            return picture_bytes(prediction, accept), accept
        raise UnsupportedFormatError(accept)

    def failure(self, error: BaseException, stage: str) -> Union[Answer, Problem]:
        """400, whatever failed, in the model server's JSON."""
        return answers.as_model_server(400, said(error))


# Bodies


def picture(content: Any) -> Dict[str, Any]:
    image = library("PIL.Image")
    return {"inputs": image.open(io.BytesIO(content)).convert("RGB")}


def sound(content: Any) -> Dict[str, Any]:
    return {"inputs": bytes(content)}


def rows(text: str) -> Dict[str, Any]:
    """A table with the column `inputs`, or with those of a question. Raises ValueError, and IndexError for none."""
    first = text.splitlines()[0].lower()
    if not any(name in first for name in ("question", "context", "inputs")):
        raise ValueError(NO_HEADER)
    entries = list(csv.DictReader(io.StringIO(text)))
    if entries and "inputs" in entries[0]:
        return {"inputs": [entry["inputs"] for entry in entries]}
    return {"inputs": entries}


READERS: Dict[Any, Callable[[Any], Any]] = {
    bodies.JSON: bodies.json_value,
    bodies.CSV: rows,
    bodies.NPY: bodies.npy_to_numpy,
    **dict.fromkeys(PICTURES, picture),
    **dict.fromkeys(SOUNDS, sound),
}


def plain(value: Any) -> Any:
    """One step towards JSON: numpy, dates, pictures as PNG in base64. Raises TypeError."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "isoformat"):
        return str(value)
    if hasattr(value, "save") and hasattr(value, "convert"):
        return base64.b64encode(picture_bytes(value, "image/png")).decode("ascii")
    raise TypeError("Object of type %s is not JSON serializable" % type(value).__name__)


def written(value: Any) -> str:
    """Compact JSON, as the container writes it. Raises ValueError for NaN."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=plain, separators=(",", ":"))


def table(value: Any) -> str:
    entries = value if isinstance(value, list) else list(value)
    stream = io.StringIO()
    writer = csv.DictWriter(stream, entries[0].keys())
    writer.writeheader()
    writer.writerows(entries)
    return stream.getvalue()


def picture_bytes(image: Any, kind: str) -> bytes:
    stream = io.BytesIO()
    image.save(stream, format="PNG" if kind == "image/x-image" else kind.partition("/")[2].upper())
    return stream.getvalue()
