"""The config.yaml of a truss: where its class is, and the values that the model gets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from panglot.packages import yaml_file
from panglot.packages.yaml_file import YamlFile
from panglot_worker.files.package_files import LARGEST_CONFIGURATION, content_if_any

NAME = "config.yaml"
WORDS = (b"model_module_dir", b"model_class_", b"docker_server", b"trt_llm")
"""Words of a config.yaml that is one of a truss, although there is no model/model.py beside it."""
DEFAULTS: dict[str, Any] = {
    "model_class_filename": "model.py",
    "model_class_name": "Model",
    "model_module_dir": "model",
    "bundled_packages_dir": "packages",
    "data_dir": "data",
    "examples_filename": "examples.yaml",
    "environment_variables": {},
    "external_package_dirs": [],
    "model_metadata": {},
    "model_name": None,
    "requirements": [],
    "secrets": {},
    "system_packages": [],
}
"""Values that the platform fills in before the model gets its configuration."""
RESOURCES = {"cpu": "1", "memory": "2Gi", "use_gpu": False, "accelerator": None}
RUNTIME = {"predict_concurrency": 1, "streaming_read_timeout": 60, "enable_tracing_data": False}


@dataclass(frozen=True)
class Config:
    """A config.yaml that was read."""

    folder: Path
    file: YamlFile

    @property
    def table(self) -> dict[str, Any]:
        """The values of the file."""
        return self.file.table

    @property
    def script(self) -> Path:
        """The file with the model's class."""
        return self.folder / self.text("model_module_dir") / self.text("model_class_filename")

    def text(self, key: str) -> str:
        """A text of the file, or its default. Raises StartError for a value that is no text."""
        value = self.table.get(key) or DEFAULTS.get(key) or ""
        if not isinstance(value, str):
            raise self.file.error(f"{key} must be a text", key)
        return value

    def section(self, key: str) -> dict[str, Any]:
        """A mapping of the file; empty where there is none. Raises StartError for a value of another kind."""
        value = self.table.get(key)
        if value is not None and not isinstance(value, dict):
            raise self.file.error(f"{key} must be a mapping", key)
        return value or {}

    def texts(self, key: str) -> list[str]:
        """A list of the file; empty where there is none. Raises StartError for a value of another kind."""
        value = self.table.get(key)
        if value is not None and not isinstance(value, list):
            raise self.file.error(f"{key} must be a list", key)
        return [str(entry) for entry in value or ()]

    @property
    def concurrency(self) -> int:
        """How many requests may be in `predict` at once. Raises StartError."""
        value = self.section("runtime").get("predict_concurrency", 1)
        if type(value) is not int or value < 1:
            raise self.file.error("predict_concurrency must be a number from 1", "runtime", "predict_concurrency")
        return value

    @property
    def whole(self) -> dict[str, Any]:
        """The configuration that the model gets: the file, with the platform's defaults."""
        own = {key: value for key, value in self.table.items() if value is not None}
        nested = {
            "resources": {**RESOURCES, **self.section("resources")},
            "runtime": {**RUNTIME, **self.section("runtime")},
        }
        return {**DEFAULTS, **self.table, **own, **nested}


def read(folder: Path) -> Config | None:
    """The config.yaml of a folder that may be a truss; None for other folders. Raises StartError."""
    file = folder / NAME
    if not file.is_file():
        return None
    # Many projects have a config.yaml: a YAML error in a file of another kind must not end the search for a dialect.
    if not (folder / "model" / "model.py").is_file():
        text = content_if_any(file, LARGEST_CONFIGURATION)
        if not any(word in text for word in WORDS):
            return None
    return Config(folder, yaml_file.read(file))
