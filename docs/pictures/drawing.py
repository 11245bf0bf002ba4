"""Draw the concept pictures from text: `make docs` writes NAME.svg and NAME-zh.svg for each NAME.drawing here.

A drawing is lines of: `box NAME X Y W H words`, `arrow FROM TO words`, `note X Y words`, `frame X Y W H words`, where
positions count in steps of twenty. `\\n` breaks words. The colours change with the reader's light or dark.
chinese.toml has the words in Chinese.
"""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Mapping
from html import escape
from pathlib import Path

HERE = Path(__file__).resolve().parent
STEP, LINE = 20, 17
STYLE = """
text { font: 14px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", Arial, "PingFang SC",
  "Microsoft YaHei", "Noto Sans CJK SC", sans-serif; fill: #1a2029 }
.box { fill: #ffffff; stroke: #3b5bdb; stroke-width: 1.6 } .good { fill: #e9f7f0; stroke: #17734a }
.bad { fill: #fdf1f0; stroke: #b92626 } .busy { fill: #eef1fd }
.frame { fill: none; stroke: #8b95a3; stroke-dasharray: 5 4 } .ground { fill: #f5f6f8 }
.arrow { stroke: #566170; stroke-width: 1.6; fill: none } .tip { fill: #566170 }
.quiet { fill: #566170; font-size: 13px }
@media (prefers-color-scheme: dark) {
  text { fill: #e7eaee } .ground { fill: #13161b } .box { fill: #1b1f26; stroke: #91a7ff }
  .good { fill: #16291f; stroke: #5bd097 } .bad { fill: #2b1b1d; stroke: #ff9188 } .busy { fill: #20263a }
  .frame { stroke: #6d7886 } .arrow { stroke: #9ca7b4 } .tip, .quiet { fill: #9ca7b4 }
}
"""
Place = tuple[float, float, float, float]


def drawn(text: str, translated: Mapping[str, str] | None = None) -> str:
    """The SVG of a drawing. Its first line is `size W H title`. Raises KeyError for words that are not translated."""
    places: dict[str, Place] = {}
    parts: list[str] = []
    head, *lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    _, width, height, title = _split(head, translated)
    for line in lines:
        kind, *words = _split(line, translated)
        if kind in ("box", "good", "bad", "busy", "frame"):
            name, place = words[0], tuple(float(number) * STEP for number in words[1:5])
            places[name] = place  # type: ignore[assignment]
            parts.append(_box(kind, place, words[5]))  # type: ignore[arg-type]
        elif kind == "arrow":
            parts.append(_arrow(places[words[0]], places[words[1]], words[2] if len(words) > 2 else ""))
        else:
            parts.append(_words(float(words[0]) * STEP, float(words[1]) * STEP, words[2], "quiet", "start"))
    size = f"{int(float(width) * STEP)} {int(float(height) * STEP)}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" role="img"><title>{escape(title)}</title>\n'
        f"<style>{STYLE}</style>\n"
        '<defs><marker id="tip" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto">'
        '<path class="tip" d="M0 0L9 4L0 8z"/></marker></defs>\n'
        '<rect class="ground" width="100%" height="100%" rx="8"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _split(line: str, translated: Mapping[str, str] | None) -> list[str]:
    """The parts of a line, with the words that a reader sees, which come last, translated."""
    parts = shlex.split(line)
    seen = {"size": 3, "note": 3, "arrow": 3}.get(parts[0], 6)
    return parts if translated is None else parts[:seen] + [translated[words] for words in parts[seen:]]


def _box(kind: str, place: Place, words: str) -> str:
    x, y, width, height = place
    shape = f'<rect class="{"" if kind == "frame" else "box "}{kind}" x="{x:g}" y="{y:g}" width="{width:g}" '
    shape += f'height="{height:g}" rx="8"/>'
    top = y + 18 if kind == "frame" else y + height / 2 + 5 - LINE * words.count("\\n") / 2
    return shape + _words(x + width / 2, top, words, "quiet" if kind == "frame" else "", "middle")


def _words(x: float, y: float, words: str, kind: str, anchor: str) -> str:
    lines = "".join(
        f'<tspan x="{x:g}" y="{y + LINE * number:g}">{escape(line)}</tspan>'
        for number, line in enumerate(words.split("\\n"))
    )
    return f'<text class="{kind}" text-anchor="{anchor}">{lines}</text>'


def _arrow(start: Place, end: Place, words: str) -> str:
    """From the side of one box to the nearest side of the other, straight."""
    (x1, y1, w1, h1), (x2, y2, w2, h2) = start, end
    if x1 + w1 < x2 or x2 + w2 < x1:
        right = x1 + w1 < x2
        points = (x1 + w1 if right else x1, y1 + h1 / 2, x2 - 2 if right else x2 + w2 + 2, y2 + h2 / 2)
    else:
        down = y1 + h1 <= y2
        points = (x1 + w1 / 2, y1 + h1 if down else y1, x2 + w2 / 2, y2 - 2 if down else y2 + h2 + 2)
    line = '<path class="arrow" marker-end="url(#tip)" d="M{:g} {:g}L{:g} {:g}"/>'.format(*points)
    middle = ((points[0] + points[2]) / 2, (points[1] + points[3]) / 2 - 7)
    return line + (_words(*middle, words, "quiet", "middle") if words else "")


def pictures() -> dict[Path, str]:
    """What every picture is to be, by its path."""
    chinese = tomllib.loads((HERE / "chinese.toml").read_text())
    every = {}
    for drawing in sorted(HERE.glob("*.drawing")):
        every[drawing.with_suffix(".svg")] = drawn(drawing.read_text())
        every[HERE / f"{drawing.stem}-zh.svg"] = drawn(drawing.read_text(), chinese[drawing.stem])
    return every


def main() -> None:
    for path, picture in pictures().items():
        path.write_text(picture)


if __name__ == "__main__":
    main()
