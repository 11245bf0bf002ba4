"""The calls between this front and another: our calls that it runs, and its calls that we run.

They travel in frames of `wire`, and in frames that only fronts send::

    RUN            calls for the other front; their heads begin with the model and the lane
    REPLY          answers, or parts of answers, as workers give them
    FAULT          an answer that the engine gave instead of the script
    RETURN         calls that could not be taken, and have not begun
    CANCEL         calls that nobody waits for any more
    TAKEN          bytes of streams that clients have taken: a front sends a bounded number of bytes beyond these
    OFFER          a worker here has nothing to do, and calls wait there
    REPORT         progress of a call, or output of a job; or the death of a worker by a call, which runs once more
    POISON         a kind of calls that has killed a worker, or was answered after it had killed one

A frame that makes no sense closes the link. Then each side takes its own calls back.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from collections.abc import Iterable, Mapping
from typing import Any

from panglot.engine.call import DONE, RUNNING, Call, CallProgress, Fault
from panglot.engine.engine import LocalEngine
from panglot.engine.workers.link import Link
from panglot.fronts.lending.call_lending import CallLending
from panglot.fronts.lending.lent_call import LentCall, address, lent_call, run_frame
from panglot_worker.line import wire

FAULT, RETURN, TAKEN, OFFER, POISON, REPORT = 42, 43, 44, 45, 46, 48
KINDS = frozenset((wire.RUN, wire.REPLY, wire.CANCEL, FAULT, RETURN, TAKEN, OFFER, POISON, REPORT))
WINDOW = 1 << 20
"""Bytes of a stream that may be under way between two fronts; then its worker is paused."""
NOT_TAKEN = frozenset(("loading", "back_off", "queue_full", "draining"))
"""Codes of the faults of an engine that takes no calls now. Another front may take them."""
monotonic = time.monotonic


class Loans:
    """Owns the calls that were lent to one other front, as the record of a worker owns its calls. A `Lendable`."""

    def __init__(self, index: int, link: Link, lendings: Mapping[int, CallLending]) -> None:
        """`lendings` are this front's models by slot."""
        self.index = index
        self.paused = True
        """Whether the link is not connected yet, or the other front too slow to read: it is lent nothing meanwhile."""
        self.in_flight: dict[int, tuple[CallLending, Call]] = {}
        """Our calls that the other front has, with the lending of their model, by the number of each loan."""
        self._lent: dict[Call, int] = {}
        """The numbers of these calls. Not their ids: two models may each have a call of the same id."""
        self._numbers = itertools.count(1)
        self._taken: dict[int, int] = {}
        """By number: bytes of our streams that have come, and that no TAKEN frame has told of."""
        self._held: set[int] = set()
        """Our streams whose clients read slowly."""
        self.borrowed: dict[int, tuple[LocalEngine, LentCall]] = {}
        """The calls of the other front that we have, by the numbers that it gave them."""
        self._link = link
        self._lendings = lendings
        self._answers: list[wire.Reply] = []

    # Our calls

    def lend(self, lending: CallLending, calls: list[Call], now: float) -> None:
        for call in calls:
            call.state, call.dispatched, call.worker, call.ahead = RUNNING, now, -1, False
            call.queued_us = int((now - call.arrived) * 1e6)
            number = self._lent[call] = next(self._numbers)
            self.in_flight[number] = lending, call
        self._link.send(run_frame(lending.slot, [(self._lent[call], call) for call in calls], now))

    def offer(self, slot: int, free: int) -> None:
        self._link.send([wire.frame(OFFER, 0, b"%d" % slot, count=min(free, 0xFFFF))])

    def tell_poison(self, slot: int, kind: bytes, length: int, died: bool) -> None:
        news = {"slot": slot, "kind": kind.hex(), "length": length, "died": died}
        self._link.send([wire.json_frame(POISON, 0, news)])

    def cancel(self, call: Call) -> bool:
        number = self._lent.get(call)
        if number is None:
            return False
        self._end(number)
        self._link.send([wire.cancel_frame([number], 0)])
        return True

    def _end(self, number: int) -> tuple[CallLending, Call] | None:
        """The call that was lent under this number, with the lending of its model; None when it has ended before."""
        lent = self.in_flight.pop(number, None)
        if lent is not None:
            del self._lent[lent[1]]
            self._taken.pop(number, None)
            self._held.discard(number)
        return lent

    def hold(self, call: Call, paused: bool) -> bool:
        """Note that the client of a stream reads slowly, or reads again; False when the stream was not lent."""
        number = self._lent.get(call)
        if number is None:
            return False
        if paused:
            self._held.add(number)
        else:
            self._held.discard(number)
            self._tell_taken(number)
        return True

    def _tell_taken(self, number: int) -> None:
        """Let the other front send more of a stream, unless its client reads slowly. Small parts are told together."""
        if self._taken.get(number, 0) >= WINDOW // 4 and number not in self._held:
            self._link.send([wire.ids_frame(TAKEN, [number, self._taken.pop(number)], 0)])

    def _replied(self, replies: list[wire.Reply]) -> None:
        now = monotonic()
        for reply in replies:
            more = reply.flags & wire.MORE
            lent = self.in_flight.get(reply.id)
            if lent is None:
                # Our call was cancelled while the answer was on its way.
                continue
            lending, call = lent
            if more:
                # As `Pool` does: a stream has no deadline once it has begun.
                call.chunks, call.dispatched, call.deadline = call.chunks + 1, now, math.inf
                self._taken[reply.id] = self._taken.get(reply.id, 0) + len(reply.body)
            else:
                self._end(reply.id)
                # First DONE, then finished, then told: see `Pool._hear`.
                call.state = DONE
                lending.engine.finished(call)
                if call.background:
                    lending.job_ended()
            call.reply(reply)
            if more:
                # Last: `call.reply` may have found the client too slow, and called `hold`.
                self._tell_taken(reply.id)

    def _failed(self, answer: dict[str, Any]) -> None:
        lent = self._end(answer["id"])
        if lent is not None:
            lending, call = lent
            call.state = DONE
            lending.engine.finished(call)
            call.fail(Fault(*answer["fault"]))

    def _returned(self, ids: list[int]) -> None:
        for lending, calls in _by_lending(filter(None, map(self._end, ids))).items():
            lending.come_back(calls)

    # Calls of the other front

    def _take(self, items: list[wire.Item]) -> None:
        now, refused = monotonic(), []
        for item in items:
            about = address(item.head)
            lending = self._lendings.get(about.slot)
            call = lent_call(self, item, about, now, lending.quota if lending is not None else None)
            # None: the model goes, or has not come here yet. The call then returns to its front.
            fault = Fault(503, "loading", "") if lending is None else lending.engine.submit(call)
            if fault is None and lending is not None:
                self.borrowed[item.id] = lending.engine, call
                lending.count_borrowed()
            elif fault is not None and fault.code in NOT_TAKEN and (lending is None or lending.may_return):
                refused.append(item.id)
            elif fault is not None:
                call.fail(fault)
        if refused:
            self._link.send([wire.ids_frame(RETURN, refused, 0)])

    def give_back(self, calls: list[LentCall]) -> None:
        """Return calls that wait here: the front that lent them has free workers by now."""
        for call in calls:
            del self.borrowed[call.item_id]
        self._link.send([wire.ids_frame(RETURN, [call.item_id for call in calls], 0)])

    def answer(self, reply: wire.Reply) -> None:
        """Send an answer, or a part of one, at the end of this turn of the loop. A stream pauses for a slow client."""
        if not reply.flags & wire.MORE:
            self.borrowed.pop(reply.id, None)
        elif reply.id in self.borrowed:
            engine, call = self.borrowed[reply.id]
            # The link alone cannot hold back a stream: it carries all other calls too.
            call.untaken += len(reply.body)
            if call.untaken > WINDOW:
                engine.pause_stream(call, True)
        if not self._answers:
            asyncio.get_running_loop().call_soon(self._send_answers)
        self._answers.append(reply)

    def answer_fault(self, item_id: int, fault: Fault) -> None:
        self.borrowed.pop(item_id, None)
        # Parts of the same answer may still wait to be sent, and must come before their fault.
        self._send_answers()
        self._link.send([wire.json_frame(FAULT, 0, {"id": item_id, "fault": list(fault)})])

    def report(self, item_id: int, news: dict[str, Any]) -> None:
        self._link.send([wire.json_frame(REPORT, 0, {"id": item_id, **news})])

    def _reported(self, news: dict[str, Any]) -> None:
        _, call = self.in_flight.get(news["id"], (0, None))
        if call is None:
            return
        if "died" in news:
            # If that front dies too, the call does not run a third time: see `after_death.come_home`.
            call.killers += 1
        elif "printed" in news:
            call.printed(news["source"], news["printed"])
        else:
            call.report(CallProgress(news["fraction"], news["text"]))

    def _send_answers(self) -> None:
        replies, self._answers = self._answers, []
        if replies:
            self._link.send(wire.reply_frame(replies, 0))

    # The link

    def on_frame(self, kind: int, count: int, payload: memoryview) -> None:
        """Take a frame of one of KINDS. Raises WireError."""
        if kind == wire.REPLY:
            self._replied(wire.replies(payload, count))
        elif kind == wire.RUN:
            self._take(wire.run_items(payload, count))
        elif kind == FAULT:
            self._failed(wire.json_object(payload))
        elif kind == RETURN:
            self._returned(wire.item_ids(payload))
        elif kind == POISON:
            news = wire.json_object(payload)
            lending = self._lendings.get(news["slot"])
            if lending is not None:
                lending.heard_poison(bytes.fromhex(news["kind"]), news["length"], news["died"])
        elif kind == OFFER:
            lending = self._lendings.get(int(bytes(payload)))
            if lending is not None:
                lending.offered(self, count, monotonic())
        elif kind == REPORT:
            self._reported(wire.json_object(payload))
        elif kind == TAKEN:
            self._resume(*wire.item_ids(payload))
        else:
            for item in wire.item_ids(payload):
                self._cancel(item)

    def _cancel(self, item: int) -> None:
        """Cancel a call of the other front. It may have ended meanwhile."""
        engine, call = self.borrowed.pop(item, (None, None))
        if engine is not None and call is not None:
            engine.cancel(call)

    def _resume(self, item: int, taken: int) -> None:
        """Go on with a stream of the other front, of which its client has taken so many bytes more."""
        engine, call = self.borrowed.get(item, (None, None))
        if engine is not None and call is not None:
            call.untaken -= taken
            if call.untaken <= WINDOW:
                engine.pause_stream(call, False)

    def lost(self) -> None:
        """The other front has died. Nobody waits for its calls; our calls run here, or get a fault."""
        borrowed, self.borrowed = self.borrowed, {}
        for engine, call in borrowed.values():
            engine.cancel(call)
        lent, self.in_flight, self._lent = self.in_flight, {}, {}
        for lending, calls in _by_lending(pair for pair in lent.values() if pair[1].state == RUNNING).items():
            lending.lost(calls)


def _by_lending(lent: Iterable[tuple[CallLending, Call]]) -> dict[CallLending, list[Call]]:
    """The calls of each model."""
    calls: dict[CallLending, list[Call]] = {}
    for lending, call in lent:
        calls.setdefault(lending, []).append(call)
    return calls
