"""Removing what a job has left in the working directory."""

from __future__ import annotations

import os
import shutil
from typing import List, Optional

FOLDERS = ("input_objects", "output_objects", "job_files")


def clean(folder_list: Optional[List[str]] = None) -> None:
    """Remove the SDK's folders, output.zip, and further folders."""
    for folder in (*FOLDERS, *(folder_list or ())):
        shutil.rmtree(folder, ignore_errors=True)
    if os.path.exists("output.zip"):
        os.remove("output.zip")
