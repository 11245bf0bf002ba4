"""The parts of a parent that need no server: the board, the choice of a front, messages, and the relay of the log."""

from __future__ import annotations

import os
import random
import selectors
import socket
from pathlib import Path

import pytest

from panglot.engine.workers.shares import FrontShare
from panglot.fronts import messages, summing
from panglot.fronts.board import ACCEPTING, BEAT, CLOSED, GIVEN, READY, Board
from panglot.fronts.channel import Channel, ChannelClosed, GivenConnection
from panglot.fronts.front_process import FrontProcess
from panglot.fronts.lending.lent_call import address
from panglot.fronts.log_relay import LogRelay
from panglot.fronts.reloading import Reloading
from panglot.fronts.saved_counters import SavedCounters
from panglot.fronts.spreading import by_preference
from panglot.fronts.timers import Timers
from panglot.settings.counts import ANY, WorkerCount
from panglot_worker.line.wire import WireError


def board_of(fronts: int) -> Board:
    board = Board(fronts)
    for row in board.rows():
        row[ACCEPTING] = row[READY] = 1
        row[BEAT] = 1000
    return board


@pytest.mark.parametrize("fronts", [2, 3, 7])
def test_connections_are_spread_to_within_one(fronts: int) -> None:
    rows = board_of(fronts).rows()
    chance = random.Random(fronts)
    for _ in range(300):
        rows[by_preference(rows, 1000)[0]][GIVEN] += 1
        counts = [row.connections for row in rows]
        assert max(counts) - min(counts) <= 1
    for _ in range(100):
        chance.choice([row for row in rows if row.connections])[CLOSED] += 1
    for _ in range(100):
        rows[by_preference(rows, 1000)[0]][GIVEN] += 1
    counts = [row.connections for row in rows]
    assert max(counts) - min(counts) <= 1


def test_short_connections_go_round() -> None:
    rows = board_of(3).rows()
    for _ in range(9):
        row = rows[by_preference(rows, 1000)[0]]
        row[GIVEN] += 1
        row[CLOSED] += 1
    assert [row[GIVEN] for row in rows] == [3, 3, 3]


def test_a_silent_or_loading_front_comes_last_and_one_that_does_not_accept_not_at_all() -> None:
    rows = board_of(4).rows()
    rows[0][BEAT] = -5000
    rows[1][READY] = 0
    rows[2][GIVEN] = 50
    rows[3][ACCEPTING] = 0
    assert by_preference(rows, 1000) == [2, 1, 0]


def test_workers_are_shared_out_without_gap_or_overlap() -> None:
    for fronts in (1, 2, 3, 5):
        shares = [FrontShare(front, fronts) for front in range(fronts)]
        for total in range(fronts, 20):
            counts = [share.of(total) for share in shares]
            assert sum(counts) == total
            indices = [index for share, count in zip(shares, counts, strict=True)
                       for index, _ in zip(share.indices(), range(count), strict=False)]  # fmt: skip
            assert sorted(indices) == list(range(total))
    assert FrontShare(1, 2).of_range(WorkerCount(2, 5)) == WorkerCount(1, 2)
    assert FrontShare(1, 2).of_range(ANY) == ANY


def test_messages_and_connections_arrive_in_their_order() -> None:
    parent, front = (Channel(sock) for sock in Channel.pair())
    one_end, other_end = socket.socketpair()
    failed = messages.Failed("it failed", "model.py", 3, "mend it", "Traceback\n" + "é" * 65536)
    assert parent.give(2, one_end)
    parent.send(failed)
    parent.send(messages.Drained(7))
    given, *others = front.received()
    assert isinstance(given, GivenConnection)
    assert given.listener == 2
    given.sock.send(b"from the front")
    assert other_end.recv(64) == b"from the front"
    assert others == [failed, messages.Drained(7)]
    parent.close()
    with pytest.raises(ChannelClosed):
        list(front.received())
    for sock in (given.sock, one_end, other_end, front):
        sock.close()


def test_a_full_channel_takes_no_connection_and_loses_no_message() -> None:
    parent, front = (Channel(sock) for sock in Channel.pair())
    connection, other = socket.socketpair()
    count = 0
    while parent.give(0, connection):
        count += 1
    parent.send(messages.Drain())
    assert not parent.flush()
    assert not parent.give(0, connection), "a connection must not overtake a message"
    received = []
    while len(received) < count + 1:
        received += list(front.received())
        parent.flush()
    assert received[-1] == messages.Drain()
    for given in received[:-1]:
        assert isinstance(given, GivenConnection)
        given.sock.close()
    for sock in (connection, other, parent, front):
        sock.close()


def test_what_is_no_message_is_refused() -> None:
    for data in (b"", b"[]", b"{}", b'{"kind": "Nothing"}', b'{"kind": "Drained"}', b"\xff"):
        with pytest.raises(ValueError, match="no message between"):
            messages.decoded(data)


def test_lines_of_two_fronts_are_never_torn(tmp_path: Path) -> None:
    target = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)
    with selectors.DefaultSelector() as selector:
        relay = LogRelay(target, 1 << 20, selector)
        logs, ends = zip(*(relay.pipe() for _ in range(2)), strict=True)
        lines = [letter * 20_000 for letter in (b"a", b"b")]
        for piece in range(0, 20_000, 5000):
            for log, end, line in zip(logs, ends, lines, strict=True):
                os.write(end, line[piece : piece + 5000])
                log.read()
        for log, end in zip(logs, ends, strict=True):
            os.write(end, b"\nlast words")
            os.close(end)
            log.close()
        relay.stream.write("of the parent\n")
        relay.drain()
    os.close(target)
    written = (tmp_path / "log").read_bytes().splitlines()
    assert sorted(written) == sorted([*lines, b"last words", b"last words", b"of the parent"])


def test_a_log_that_nobody_reads_is_dropped_and_counted() -> None:
    reads, writes = os.pipe()
    with selectors.DefaultSelector() as selector:
        relay = LogRelay(writes, 100_000, selector)
        missing: list[int] = []
        relay.on_space = missing.append
        for _ in range(400):
            relay.add(b"x" * 999 + b"\n")
        assert relay.dropped > 200
        assert selector.get_map(), "the relay waits until somebody reads"
        while not missing:
            os.read(reads, 65536)
            relay.write()
        assert missing == [relay.dropped]
    os.close(reads)
    os.close(writes)


def test_timers_run_in_their_order() -> None:
    now, done = [0.0], []
    timers = Timers(lambda: now[0])
    timers.after(2, lambda: done.append("late"))
    timers.after(1, lambda: done.append("early"))
    assert timers.wait() == 1
    now[0] = 1.5
    timers.run()
    assert (done, timers.wait()) == (["early"], 0.5)
    now[0] = 9
    timers.run()
    assert (done, timers.wait()) == (["early", "late"], None)


COUNTED = """# HELP panglot_requests_total requests answered
# TYPE panglot_requests_total counter
panglot_requests_total{route="/predict",status="200"} 3
# HELP panglot_batch_size items per script call
# TYPE panglot_batch_size histogram
panglot_batch_size_bucket{le="1"} 3
panglot_batch_size_sum 3.000000
# HELP panglot_queue_length requests waiting
# TYPE panglot_queue_length gauge
panglot_queue_length 2
"""


def test_figures_of_fronts_are_added_series_by_series() -> None:
    other = COUNTED.replace("/predict", "/other")
    lines = summing.metrics([COUNTED, COUNTED, other]).splitlines()
    assert 'panglot_requests_total{route="/predict",status="200"} 6' in lines
    assert 'panglot_requests_total{route="/other",status="200"} 3' in lines
    assert "panglot_queue_length 6" in lines
    assert len([line for line in lines if line.startswith("# TYPE")]) == 3
    assert lines.index('panglot_requests_total{route="/other",status="200"} 3') < lines.index("panglot_queue_length 6")


def test_a_successor_goes_on_with_what_was_counted_and_with_no_gauge() -> None:
    saved = SavedCounters(3)
    assert saved.read(1) == ""
    for count in (3, 4, 5):
        saved.save(1, summing.counters(COUNTED.replace("} 3", f"}} {count}")))
    assert 'status="200"} 5' in saved.read(1)
    assert "panglot_queue_length" not in saved.read(1)
    assert (saved.read(0), saved.read(2)) == ("", "")
    saved.save(1, "x" * (2 << 20))
    assert 'status="200"} 5' in saved.read(1), "what does not fit leaves what was saved before"


def test_status_rows_of_fronts_become_those_of_one_server() -> None:
    def of(index: int) -> dict[str, object]:
        sums = dict.fromkeys(summing.SUMS, index + 1)
        pool = {"model": "m", "pool": "", "workers": "1:2" if index else 1, "wanted": 1, "ready": 1}
        worker = {"model": "m", "pool": "", "index": index}
        lists = {"deaths": [], "errors": [], "recent": [{"when": index}], "batches": [[1, 2]], "restarts": {"died": 1}}
        cost = {"pid": index, "cpu": 0.5, "memory": 10}
        state = "loading" if index else "ready"
        return {**sums, **lists, "state": state, "uptime": index, "front": cost, "pools": [pool], "workers": [worker]}

    status = summing.status({1: of(1), 0: of(0)})
    assert (status["answered"], status["state"], status["batches"]) == (3, "loading", [(1, 4)])
    assert status["pools"] == [{"model": "m", "pool": "", "workers": "2:3", "wanted": 2, "ready": 2}]
    assert [(worker["index"], worker["front"]) for worker in status["workers"]] == [(0, 0), (1, 1)]
    assert [front["pid"] for front in status["fronts"]] == [0, 1]
    assert status["restarts"] == {"died": 2}
    assert [entry["when"] for entry in status["recent"]] == [0, 1]


def test_fronts_reload_one_after_the_other_and_a_dead_one_holds_up_nobody() -> None:
    fronts = [FrontProcess(index, Board(3)) for index in range(3)]
    for front in fronts:
        front.pid = 1
    told: list[int] = []
    reloading = Reloading(fronts)
    reloading.begin(lambda front, message: told.append(front.index))
    assert told == [0]
    reloading.ended(2)
    assert told == [0], "a front that does not reload says nothing about the one that does"
    fronts[1].pid = 0
    reloading.ended(0)
    assert told == [0, 2], "a front without a process loads the files of today when it is forked"
    reloading.begin(lambda front, message: told.append(front.index))
    assert told == [0, 2]
    fronts[1].pid = 1
    reloading.ended(2)
    assert told == [0, 2, 0]


def test_the_address_of_a_lent_call_survives_any_head() -> None:
    assert address(b"3\1\1a lane\1id\0route\1more") == (3, None, False, "a lane", b"id\0route\1more")
    assert address(b"3\0012.5\1a lane\1id") == (3, 2.5, False, "a lane", b"id")
    assert address(b"3\0012.5 held\1a lane\1id") == (3, 2.5, True, "a lane", b"id")
    for head in (b"", b"3", b"3\1\1lane", b"x\1\1lane\1head", b"-1\1\1lane\1head", b"3\1long\1lane\1head"):
        with pytest.raises(WireError):
            address(head)
