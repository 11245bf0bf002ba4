"""The folder that `model_fn` gets as `model_dir`."""

from __future__ import annotations

from pathlib import Path

from panglot.dialects.sagemaker.entry import CODE, Entry
from panglot.errors import StartError
from panglot.packages import archive_cache

ARCHIVE = "model.tar.gz"
FOLDERS = ("model", "model_dir", "models")


def choose(entry: Entry | None, root: Path, named: str) -> tuple[Path, str]:
    """The folder, and the reason for it. `named` is its path by a setting. Raises StartError."""
    if named:
        path = Path(named).absolute()
        if path.is_file():
            return archive_cache.unpacked(path), f"model_data is {named}"
        if not path.is_dir():
            raise StartError(f"model_data is {named}, and there is no such folder or archive", fix="correct the path")
        return path, f"model_data is {named}"
    if entry is None or entry.folder.name == CODE:
        return root, "the folder with code is model_dir"
    for folder in dict.fromkeys((entry.folder, root)):
        for name in FOLDERS:
            if (folder / name).is_dir() and not (folder / name / "__init__.py").is_file():
                return folder / name, f"{name} is model_dir"
        if (folder / ARCHIVE).is_file():
            return archive_cache.unpacked(folder / ARCHIVE), f"model_dir is what {ARCHIVE} has"
    return entry.folder, "the folder of the script is model_dir"
