"""Takes and gives every type that predictors of Cog are written with."""

import dataclasses
import enum
import io
import pathlib
import sys
import tempfile
from typing import Any, Dict, List, Literal, Optional, TypedDict, Union

from cog import BaseRunner, Input, Path, Secret


class Size(str, enum.Enum):
    SMALL = "small"
    LARGE = "large"


class Shape(TypedDict, total=False):
    width: int


@dataclasses.dataclass
class Drawn:
    seen: Dict[str, Any]
    file: Optional[Path] = None
    files: Optional[List[Path]] = None
    nested: Optional[Dict[str, Any]] = None


class Runner(BaseRunner):
    async def setup(self) -> None:
        self.ready = "set up"

    def run(
        self,
        prompt: str = Input(description="what to draw", min_length=1, max_length=20, regex="^[a-z ]+$"),
        size: Size = Size.SMALL,
        mode: Literal["a", "b"] = "a",
        level: Literal[1, 2] = 1,
        number: Union[int, float] = 1,
        options: dict = Input(default={"k": 1}),
        tree: dict = Input(default={"leaves": [1]}),
        rows: List[dict] = Input(default=[]),
        names: List[str] = Input(default=["x"]),
        images: Optional[List[Path]] = Input(default=None),
        key: Optional[Secret] = None,
        anything: Any = None,
        seed: int = Input(default=None),
        grid: List[List[float]] = Input(default=[[1.5]]),
        either: Union[Literal["auto"], int] = "auto",
        parts: List[Literal["a", "b"]] = Input(default=["a"]),
        colors: List[str] = Input(default=["red"], choices=["red", "blue"]),
        keys: List[Secret] = Input(default=[]),
        local: List[pathlib.Path] = Input(default=["words.txt"]),
        maybe: List[Optional[int]] = Input(default=[]),
        shape: Shape = Input(default={}),
    ) -> Optional[Drawn]:
        if prompt == "exit":
            sys.exit(3)
        if prompt == "none":
            return None
        seen = {
            "size": size, "mode": mode, "level": level, "number": number, "options": dict(options), "rows": rows,
            "leaves": list(tree["leaves"]),
            "names": list(names), "images": [image.read_text() for image in images or []], "anything": anything,
            "grid": grid, "either": either, "parts": parts, "colors": colors, "maybe": maybe, "shape": shape,
            "keys": [each.get_secret_value() for each in keys], "local": [str(each.name)[-9:] for each in local],
            "seed": seed, "key": key.get_secret_value() if key else None, "ready": self.ready,
        }  # fmt: skip
        names.append("changed")
        options["changed"] = True
        tree["leaves"].append("changed")
        drawn = Path(tempfile.mkdtemp()) / "drawn.txt"
        drawn.write_text(prompt)
        return Drawn(seen, drawn, [drawn, drawn], {"inner": {"file": drawn}, "open": opened(drawn)})


def opened(drawn: Path) -> Dict[str, Any]:
    """Files that are open, as scripts return them: at their beginning or at their end."""
    temporary = tempfile.NamedTemporaryFile(suffix=".txt")
    temporary.write(b"temporary")
    return {"bytes": drawn.open("rb"), "text": drawn.open(), "memory": io.BytesIO(b"memory"), "temporary": temporary}
