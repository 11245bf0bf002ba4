"""Settings that only MegFlow packages have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from panglot import settings
from panglot.settings import setting


@dataclass(frozen=True)
class Settings(settings.Settings):
    """All settings of a MegFlow package."""

    plugin: str = setting("", "folder of the plugins [that of the graph file]", "str", metavar="FOLDER", short="-p")
    module: str = setting("", "folder where imports of plugins begin", "str", metavar="FOLDER")
    dynamic: str = setting("", "TOML file with variables for the graph file's template", "str", metavar="FILE")
    uri_root: str = setting(
        "", "the only folder whose files a request may name; none by default", "folder", metavar="FOLDER"
    )
    cameras: bool = setting(False, "requests may name cameras of this machine, such as /dev/video0", "bool")

    def for_worker(self) -> dict[str, Any]:
        """The settings that a worker gets."""
        return {**super().for_worker(), "uri_root": self.uri_root, "cameras": self.cameras}
