"""Every frame that enters a chain of shared nodes is seen by all of them, whatever their speeds."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from support.graph_command import Command
from support.traffic import times
from support.videos import make

PLATFORM = Path(__file__).resolve().parents[2] / "src" / "panglot_worker/dialects/megflow/platform/always"

VIDEOS = """
main = "videos"
nodes = [
    {{ name = "slow", ty = "Slow", path = "{slow}" }},
    {{ name = "batches", ty = "Batches", path = "{batches}" }},
]
[[graphs]]
name = "one"
inputs = [{{ name = "frames", cap = 4, ports = ["slow:inp"] }}]
outputs = [{{ name = "told", cap = 4, ports = ["batches:out"] }}]
connections = [{{ cap = 4, ports = ["slow:out", "batches:inp"] }}]
[[graphs]]
name = "videos"
connections = [
    {{ cap = 4, ports = ["input:out", "each:frames"] }},
    {{ cap = 4, ports = ["each:told", "input:inp"] }},
]
nodes = [
    {{ name = "input", ty = "VideoInput", urls = [{urls}], repeat = 1 }},
    {{ name = "each", ty = "one" }},
]
"""
NODES = """
import time
from megflow import register

class Writes:
    def __init__(self, name, args):
        self.file = open(args["path"], "a", buffering=1)
    def tell(self, envelope):
        print(envelope.from_addr, envelope.partial_id, file=self.file)
        self.out.send(envelope)

@register(inputs=["inp"], outputs=["out"])
class Slow(Writes):
    def exec(self):
        envelope = self.inp.recv()
        if envelope is not None:
            time.sleep(0.06)
            self.tell(envelope)

@register(inputs=["inp"], outputs=["out"])
class Batches(Writes):
    def exec(self):
        envelopes, _ = self.inp.batch_recv(4, 100)
        for envelope in envelopes:
            self.tell(envelope)
"""


def test_two_videos_through_a_slow_node_and_one_that_takes_batches(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    folder.mkdir()
    urls = ", ".join(f'"{make(tmp_path / f"{frames}.mp4", frames)}"' for frames in (13, 7))
    written = {name: tmp_path / name for name in ("slow", "batches")}
    (folder / "app.toml").write_text(VIDEOS.format(urls=urls, **written))
    (folder / "nodes.py").write_text(NODES)
    with Command("-p", "app", cwd=tmp_path) as command:
        assert command.end() == 0, command.text
    entered = [[1, n] for n in range(13)] + [[2, n] for n in range(7)]
    for name, path in written.items():
        seen = [[int(word) for word in line.split()] for line in path.read_text().splitlines()]
        assert sorted(seen) == entered, name


# Any chain, in this process


class Stage(NamedTuple):
    """A node of the chain: how long it takes for one envelope, how it takes them, and how many of it there are."""

    ms: int = 0
    batch: int = 0
    wait: int = 0
    clones: int = 1
    keeps: bool = False
    """Whether it sends nothing before it is told that somebody has ended."""
    shared: bool = True


class Chain(NamedTuple):
    stages: list[Stage]
    frames: list[int]
    """How many each stream has."""
    cap: int = 4
    ends: bool = False
    """Whether nothing leaves the chain: what the last node sees is all there is to see."""


STAGES = st.builds(
    Stage, ms=st.sampled_from([0, 0, 1, 5]), batch=st.integers(0, 5), wait=st.sampled_from([0, 2, 20]),
    clones=st.sampled_from([1, 1, 2, 3]), keeps=st.booleans(), shared=st.sampled_from([True, True, False]),
)  # fmt: skip
CHAINS = st.builds(
    Chain, stages=st.lists(STAGES, min_size=1, max_size=4), frames=st.lists(st.integers(0, 9), min_size=1, max_size=5),
    cap=st.integers(1, 4), ends=st.booleans(),
)  # fmt: skip
SEEN: dict[str, list[Any]] = {}
"""What nodes saw, by the word of the run."""
WORDS = itertools.count()


@pytest.fixture(scope="module")
def megflow() -> Any:
    """The module as plugins see it, with the nodes of the chains registered."""
    if str(PLATFORM) not in sys.path:
        sys.path.insert(0, str(PLATFORM))
    import megflow as found

    found.register("ChainStage", inputs=["inp"], outputs=["out"])(ChainStage)
    found.register("ChainEnd", inputs=["inp"])(ChainEnd)
    found.register("ChainSource", outputs=["out"])(ChainSource)
    return found


class ChainStage:
    def __init__(self, name: str, args: dict[str, Any]) -> None:
        self.stage = Stage(**args["stage"])
        self.word = f"{args['word']}-{args['place']}"
        self.kept: list[Any] = []

    def exec(self) -> None:
        envelopes, ended = self.take()
        for envelope in envelopes:
            time.sleep(self.stage.ms / 1000)
            SEEN[self.word].append(envelope.msg)
        self.kept += envelopes
        if ended or not self.stage.keeps:
            for envelope in self.kept:
                self.send(envelope)
            self.kept = []

    def take(self) -> tuple[list[Any], bool]:
        if self.stage.batch:
            found: tuple[list[Any], bool] = self.inp.batch_recv(self.stage.batch, self.stage.wait)
            return found
        envelope = self.inp.recv()
        return ([], True) if envelope is None else ([envelope], False)

    def send(self, envelope: Any) -> None:
        self.out.send(envelope)


class ChainEnd(ChainStage):
    def send(self, envelope: Any) -> None:
        pass


class ChainSource:
    """Sends the frames of all streams in turn, and ends each behind its last."""

    def __init__(self, name: str, args: dict[str, Any]) -> None:
        self.frames = args["frames"]

    def exec(self) -> None:
        from megflow import Envelope

        for number in range(max(self.frames) + 1):
            for stream, frames in enumerate(self.frames):
                if number <= frames:
                    message = [stream, number] if number < frames else None
                    self.out.send(Envelope.pack(message, info={"to_addr": stream, "partial_id": number}))


def table(**keys: Any) -> str:
    def value(one: Any) -> str:
        return table(**one) if isinstance(one, dict) else str(one).lower() if isinstance(one, bool) else repr(one)

    return "{ " + ", ".join(f"{key} = {value(one)}" for key, one in keys.items()) + " }"


def written(chain: Chain, word: str) -> str:
    """The chain as a graph file: shared nodes at the top level, others in the graph that each stream has."""
    shared, local = [], []
    for place, stage in enumerate(chain.stages):
        last = chain.ends and place == len(chain.stages) - 1
        node = table(name=f"n{place}", ty="ChainEnd" if last else "ChainStage", cloned=stage.clones, word=word,
                     place=place, stage=stage._asdict())  # fmt: skip
        (shared if stage.shared else local).append(node)
    pairs = [table(cap=chain.cap, ports=[f"n{n}:out", f"n{n + 1}:inp"]) for n in range(len(chain.stages) - 1)]
    told = [] if chain.ends else [table(name="told", cap=chain.cap, ports=[f"n{len(chain.stages) - 1}:out"])]
    out = [] if chain.ends else [table(cap=chain.cap, ports=["each:told", "last:inp"])]
    last = [] if chain.ends else [table(name="last", ty="ChainEnd", word=word, place="last", stage={})]
    return f"""
main = "all"
nodes = [{", ".join(shared)}]
[[graphs]]
name = "one"
inputs = [{{ name = "frames", cap = {chain.cap}, ports = ["n0:inp"] }}]
outputs = [{", ".join(told)}]
connections = [{", ".join(pairs)}]
nodes = [{", ".join(local)}]
[[graphs]]
name = "all"
connections = [{
        ", ".join(
            [
                *out,
                '{ cap = 4, ports = ["source:out", "demux:inp"] }',
                '{ cap = 4, ports = ["demux:out", "each:frames"] }',
            ]
        )
    }]
nodes = [{
        ", ".join(
            [
                *last,
                table(name="source", ty="ChainSource", frames=chain.frames),
                '{ name = "demux", ty = "DynDemux" }',
                '{ name = "each", ty = "one" }',
            ]
        )
    }]
"""


def seen_by(megflow: Any, chain: Chain) -> dict[str, Counter[Any]]:
    """How often each node of the chain saw each frame."""
    places = [*range(len(chain.stages)), *([] if chain.ends else ["last"])]
    return ran(megflow, lambda word: written(chain, word), places)


def ran(megflow: Any, text: Callable[[str], str], places: list[Any]) -> dict[str, Counter[Any]]:
    """Run a graph, whose nodes know the word, to its end: how often the nodes at these places saw each frame."""
    word = f"chain{next(WORDS)}"
    for place in places:
        SEEN[f"{word}-{place}"] = []
    running = megflow.Graph(config_str=text(word))
    waiting = threading.Thread(target=running.wait, daemon=True)
    waiting.start()
    waiting.join(60)
    assert not waiting.is_alive(), "the graph did not end"
    return {str(place): Counter(map(tuple, SEEN.pop(f"{word}-{place}"))) for place in places}


def entered(frames: list[int], times: int = 1) -> Counter[Any]:
    return Counter({(stream, number): times for stream, count in enumerate(frames) for number in range(count)})


@settings(max_examples=times(40, 1000), deadline=None, database=None, derandomize=times(1, 0) == 1,
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(CHAINS)
@example(Chain([Stage(ms=10), Stage(batch=4, wait=20)], [13, 7]))
@example(Chain([Stage(clones=2, ms=5), Stage(clones=3, keeps=True), Stage(clones=2)], [5, 1, 3], cap=1))
@example(Chain([Stage(ms=5), Stage(batch=3, wait=0)], [4, 4, 4], ends=True))
def test_any_chain_of_nodes(megflow: Any, chain: Chain) -> None:
    expected = entered(chain.frames)
    for place, seen in seen_by(megflow, chain).items():
        assert seen == expected, f"node {place}: {expected - seen} not seen, {seen - expected} too often"


SHARED_GRAPH = """
main = "all"
nodes = [{ name = "shared", ty = "inner" }]
[[graphs]]
name = "part"
inputs = [{ name = "inp", cap = 2, ports = ["a:inp"] }]
outputs = [{ name = "out", cap = 2, ports = ["a:out"] }]
nodes = [STAGE_a]
[[graphs]]
name = "inner"
INNER
[[graphs]]
name = "one"
inputs = [{ name = "frames", cap = 2, ports = ["shared:inp"] }]
outputs = [{ name = "told", cap = 2, ports = ["shared:out"] }]
[[graphs]]
name = "all"
connections = [
    { cap = 4, ports = ["source:out", "demux:inp"] },
    { cap = 4, ports = ["demux:out", "each:frames"] },
    { cap = 4, ports = ["each:told", "last:inp"] },
]
nodes = [
    { name = "source", ty = "ChainSource", frames = [5, 0, 9, 2] },
    { name = "demux", ty = "DynDemux" },
    { name = "each", ty = "one" },
    STAGE_last
]
"""
INNER = {
    "two ways that meet": """
inputs = [{ name = "inp", cap = 1, ports = ["b:inp", "c:inp"] }]
outputs = [{ name = "out", cap = 2, ports = ["d:out"] }]
connections = [{ cap = 1, ports = ["b:out", "c:out", "d:inp"] }]
nodes = [STAGE_b, STAGE_c, STAGE_d]
""",
    "a way past a node": """
inputs = [{ name = "inp", cap = 2, ports = ["b:inp", "d:inp"] }]
outputs = [{ name = "out", cap = 2, ports = ["d:out"] }]
connections = [{ cap = 2, ports = ["b:out", "d:inp"] }]
nodes = [STAGE_b, STAGE_d]
""",
    "a side chain of its own": """
inputs = [{ name = "inp", cap = 2, ports = ["b:inp"] }]
outputs = [{ name = "out", cap = 2, ports = ["d:out"] }]
connections = [{ cap = 1, ports = ["b:out", "d:inp"] }, { cap = 1, ports = ["own:out", "end:inp"] }]
nodes = [STAGE_b, STAGE_d, { name = "own", ty = "ChainSource", frames = [3] }, { name = "end", ty = "NoopConsumer" }]
""",
    "graphs made on demand": """
inputs = [{ name = "inp", cap = 2, ports = ["demux:inp"] }]
outputs = [{ name = "out", cap = 2, ports = ["d:out"] }]
connections = [{ cap = 1, ports = ["demux:out", "parts:inp"] }, { cap = 1, ports = ["parts:out", "d:inp"] }]
nodes = [{ name = "demux", ty = "DynDemux" }, { name = "parts", ty = "part" }, STAGE_d]
""",
}
SPEEDS = {
    "a": Stage(ms=3), "b": Stage(ms=4, clones=2), "c": Stage(batch=3, wait=5), "d": Stage(keeps=True), "last": Stage(),
}  # fmt: skip


@pytest.mark.parametrize("inner", INNER)
def test_shared_graphs_of_any_shape(megflow: Any, inner: str) -> None:
    def text(word: str) -> str:
        found = SHARED_GRAPH.replace("INNER", INNER[inner])
        for name, stage in SPEEDS.items():
            ty = "ChainEnd" if name == "last" else "ChainStage"
            node = table(name=name, ty=ty, cloned=stage.clones, word=word, place=name, stage=stage._asdict())
            found = found.replace(f"STAGE_{name}", node)
        return found

    seen = ran(megflow, text, list(SPEEDS))
    ways = 2 if inner in ("two ways that meet", "a way past a node") else 1
    assert seen["last"] == entered([5, 0, 9, 2], ways)
