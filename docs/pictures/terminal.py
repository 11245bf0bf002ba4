"""Draw a recorded terminal as an SVG that moves: typed lines appear letter by letter, answers all at once.

`make docs` runs it for first-minute.txt. It needs no browser, no font and no script, so the drawing moves in a README
too. A reader who asks the system for less motion sees the last frame.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

HERE = Path(__file__).resolve().parent
TYPED = "$ "
WIDTH, LINE, LETTER, MARGIN, BAR = 840, 22, 8.43, 20, 40
PER_LETTER, PER_ANSWER, AT_THE_END = 0.035, 0.9, 5.0
"""Seconds: to type a letter, to wait for an answer, to read the whole."""
STYLE = """
.typed { fill: #ffffff; font-weight: 600 } .prompt { fill: #5bd097; font-weight: 600 }
.said { fill: #c8d0da } .good { fill: #5bd097 } .bad { fill: #ff9188 }
text { font: 14px ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  white-space: pre }
.cover { fill: #14181e }
@media (prefers-reduced-motion: reduce) { * { animation: none !important } .cover { display: none } }
"""


def drawn(recorded: str) -> str:
    """The SVG of a recording whose typed lines begin with a dollar."""
    lines = recorded.rstrip("\n").split("\n")
    starts, total = _schedule(lines)
    height = BAR + LINE * len(lines) + MARGIN
    parts: list[str] = []
    rules: list[str] = []
    for number, (line, start) in enumerate(zip(lines, starts, strict=True)):
        top = BAR + LINE * number
        if line.startswith(TYPED):
            parts.append(_typed(line, number, top))
            rules.append(_cover_rule(number, start, len(line) - len(TYPED), total))
            if number:  # The first prompt is there from the start: a terminal is never empty.
                rules.append(_said_rule(number, start, total))
        elif line:
            parts.append(_said(line, number, top))
            rules.append(_said_rule(number, start, total))
    dots = "".join(f'<circle cx="{20 + 18 * place}" cy="18" r="5.5" fill="#39424e"/>' for place in range(3))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">'
        f"<title>{escape(_title(lines))}</title>\n<style>{STYLE}{''.join(rules)}</style>\n"
        f'<rect width="{WIDTH}" height="{height}" rx="10" fill="#14181e" stroke="#39424e"/>{dots}\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _title(lines: list[str]) -> str:
    return "A terminal: " + ", then ".join(line[len(TYPED) :] for line in lines if line.startswith(TYPED))


def _schedule(lines: list[str]) -> tuple[list[float], float]:
    """When each line begins, and how long the whole takes."""
    starts, now = [], 0.3
    for line in lines:
        if line.startswith(TYPED):
            starts.append(now)
            now += PER_LETTER * len(line) + PER_ANSWER
        else:
            starts.append(now)
            now += 0.12 if line else PER_ANSWER
    return starts, now + AT_THE_END


def _typed(line: str, number: int, top: int) -> str:
    left = MARGIN + LETTER * len(TYPED)
    return (
        f'<text class="prompt" id="s{number}" x="{MARGIN}" y="{top + 15}">$</text>'
        f'<text class="typed" x="{left:.1f}" y="{top + 15}">{escape(line[len(TYPED) :])}</text>'
        f'<rect class="cover" id="c{number}" x="{left:.1f}" y="{top}" width="{WIDTH - left:.1f}" height="{LINE}"/>'
    )


def _said(line: str, number: int, top: int) -> str:
    kind = "bad" if '"error"' in line else "good" if line.startswith(("──", "{")) else "said"
    return f'<text class="{kind}" id="s{number}" x="{MARGIN}" y="{top + 15}">{escape(line)}</text>'


def _cover_rule(number: int, start: float, letters: int, total: float) -> str:
    """What hides a typed line moves to the right, a letter at a time."""
    begin, end = 100 * start / total, 100 * (start + PER_LETTER * letters) / total
    return (
        f"@keyframes c{number} {{ 0%, {begin:.2f}% {{ transform: none; animation-timing-function: steps({letters}) }} "
        f"{end:.2f}% {{ transform: translateX({LETTER * letters:.1f}px) }} "
        f"{end + 0.01:.2f}%, 100% {{ transform: translateX({WIDTH}px) }} }}\n"
        f"#c{number} {{ animation: c{number} {total:.1f}s infinite }}\n"
    )


def _said_rule(number: int, start: float, total: float) -> str:
    begin = 100 * start / total
    return (
        f"@keyframes s{number} {{ 0%, {begin:.2f}% {{ opacity: 0 }} {begin + 0.01:.2f}%, 100% {{ opacity: 1 }} }}\n"
        f"#s{number} {{ animation: s{number} {total:.1f}s infinite }}\n"
    )


def main() -> None:
    for recording in sorted(HERE.glob("*.txt")):
        recording.with_suffix(".svg").write_text(drawn(recording.read_text()))


if __name__ == "__main__":
    main()
