"""What `panglot replay` prints; it fits 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from panglot.terminal.text import brief, visible
from panglot.tools.replay.findings import Findings

WIDTH = 80
SHOWN = 12
CREDENTIALS = ("authorization", "cookie", "key", "token")


def lines(findings: Findings, recording: str, target: str) -> Iterator[str]:
    """The summary, line by line."""
    yield from _wrapped(f"{recording} against {target}")
    yield from _wrapped(_counts(findings))
    for group in findings.ordered()[:SHOWN]:
        yield from _wrapped(visible(group.sentence(findings.compared)), "  ")
        yield from _wrapped(brief(f"pair {group.pair}: {group.detail}", 200), "      ")
    if len(findings.groups) > SHOWN:
        yield f"  and {len(findings.groups) - SHOWN} more kinds; --json and --html have them all"
    if findings.sides.recorded.total:
        yield from _latencies(findings)
    for sentence in findings.slowdowns():
        yield from _wrapped(sentence)
    if findings.refused:
        names = ", ".join(sorted(name for name in findings.withheld if any(word in name for word in CREDENTIALS)))
        yield from _wrapped(
            f"{findings.refused} were refused for want of credentials, which are never recorded ({brief(names, 100)}): "
            "give them with --header or PANGLOT_TOKEN"
        )
    if findings.exit_code == 0:
        yield "the answer agrees" if findings.compared == 1 else f"all {findings.compared} answers agree"


def _counts(findings: Findings) -> str:
    text = f"{findings.compared} compared, {findings.different} different"
    text += f", {findings.unanswered} of them without an answer" if findings.unanswered else ""
    for why, count in findings.skipped_why.items():
        text += f"; {count} not sent: {why}"
    return text if findings.compared else f"{text}: nothing was compared"


def _latencies(findings: Findings) -> Iterator[str]:
    yield f"{'milliseconds':<28}{'recorded':>12}{'replayed':>12}{'ratio':>10}"
    rows = {**findings.sides.latency(), **{f"stage {name}": row for name, row in findings.sides.stage_means().items()}}
    for name, row in rows.items():
        ratio = f"{row['replayed'] / row['recorded']:.2f}" if row["recorded"] else "-"
        yield f"{visible(name):<28.28}{row['recorded']:>12.3f}{row['replayed']:>12.3f}{ratio:>10}"


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent + "  ") or [indent]
