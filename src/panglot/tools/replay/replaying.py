"""A replay from its first pair to its last."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from panglot.inputs.addresses import ServerAddress
from panglot.recording.recording import Pair, RecordedAnswer, Recording, why_not_sent
from panglot.tools.replay.answers import Found, Rules, differences
from panglot.tools.replay.findings import Findings
from panglot.tools.replay.pixels import Pixels
from panglot.tools.replay.sending import ReplayPace, Sender


def replay(
    recording: Recording,
    address: ServerAddress,
    headers: dict[str, str],
    pace: ReplayPace,
    rules: Rules,
    findings: Findings,
) -> None:
    """Send what can be sent, compare the answers, and add what differs to the findings."""
    with Pixels() as pixels:

        def report(pair: Pair, answer: RecordedAnswer, took: float, problem: str) -> None:
            missing = [Found("unanswered", "", problem)] if problem else []
            findings.add(pair, answer, took, missing or differences(pair.answer, answer, rules, pixels))

        def sendable() -> Iterator[Pair]:
            for pair in recording.pairs():
                why = why_not_sent(pair)
                if why:
                    findings.skip(why)
                else:
                    yield pair

        asyncio.run(Sender(address, headers, pace, report).run(sendable()))
