"""Which model and which route a path means; whose bytes are held; several texts of metrics in one."""

from __future__ import annotations

import dataclasses
import random

from panglot.fronts.board import Board
from panglot.fronts.limits.member_bytes import MemberBytes
from panglot.fronts.limits.member_quota import MemberQuota
from panglot.metrics.counters import merged
from panglot.settings import Settings
from panglot.web.contract import Contract, InferRoute, neutral_error
from panglot.web.limits.quota import Quota
from panglot.web.limits.shares import Share, Shares
from panglot.web.models import Model, Models
from panglot.web.paths import Paths
from support.still import still_front, still_model


def model(name: str, version: str = "1", **contract: bool) -> Model:
    still = still_model(still_front())
    return dataclasses.replace(
        still, name=name, version=version, contract=dataclasses.replace(still.contract, **contract)
    )  # fmt: skip


def found(models: Models, path: bytes, method: bytes = b"POST") -> tuple[str, str, str] | None:
    destination = Paths(models).find(method, path)
    return destination and (destination.model.name, destination.model.version, path[destination.cut :].decode())


def test_the_newest_version_is_the_one_with_the_greatest_number() -> None:
    models = Models(model("a", "9"), model("a", "10"), model("a", "2"), model("b", "1"))
    assert models.versions("a") == ("2", "9", "10")
    assert models.names == ("a", "b")
    newest = models.get("a")
    assert newest is not None
    assert newest.version == "10"
    assert models.get("a", "3") is None
    assert models.default is None
    models.remove(newest)
    assert models.versions("a") == ("2", "9")


def test_one_that_was_replaced_takes_nothing_away_when_it_goes() -> None:
    first, second = model("a"), model("a")
    models = Models(first)
    changes: list[int] = []
    models.watch(lambda: changes.append(len(models)))
    assert models.add(second) is first
    models.remove(first)
    assert models.get("a") is second
    models.remove(second)
    assert models.names == ()
    assert changes == [1, 0]


def test_paths_of_models() -> None:
    models = Models(model("a"), model("a", "2"), model("b", fold_case=True), default="a")
    assert found(models, b"/predict") == ("a", "2", "/predict")
    assert found(models, b"/models/a/predict") == ("a", "2", "/predict")
    assert found(models, b"/models/a/versions/1/predict") == ("a", "1", "/predict")
    assert found(models, b"/models/b/PREDICT") == ("b", "1", "/PREDICT")
    for path in (b"/PREDICT", b"/models/a/PREDICT", b"/models/B/predict", b"/models/a/versions/3/predict", b"/models"):
        assert found(models, path) is None
    assert found(models, b"/models/a/predict", b"GET") is None


def test_a_platform_at_the_root_is_found_with_and_without_the_slash() -> None:
    platform = dataclasses.replace(model("arts"), contract=Contract((InferRoute("/", "/"),), neutral_error))
    models = Models(platform)
    assert found(models, b"/models/arts/") == ("arts", "1", "/")
    assert found(models, b"/models/arts") == ("arts", "1", "")
    assert found(models, b"/") is None


def test_shares_add_up_whatever_comes_and_goes() -> None:
    """Nobody holds more than there is, and everybody has some bytes that no flood of the others can take."""
    seed = random.Random(7)
    settings = Settings(request_memory=80_000, small_body=100, max_body=50_000)
    quota = Quota(settings)
    shares = Shares(quota)
    members = [shares.new(settings) for _ in range(4)]
    for _ in range(2000):
        share = seed.choice(members)
        size = seed.choice((50, 500, 5000))
        if seed.random() < 0.6:
            share.take(size, size)
        else:
            share.used -= min(share.used, size)
        assert quota.used == sum(member.used for member in members) <= settings.request_memory
        assert shares.common_used == sum(member.beyond_own for member in members) <= shares.most_common
    flooded, quiet = members[0], members[1]
    for member in members:
        member.used = 0
    while flooded.take(5000, 5000):
        pass
    assert quiet.take(8000, 8000)
    assert flooded.largest_body < settings.max_body
    shares.release(flooded)
    assert quiet.own > (settings.request_memory - shares.most_common) // 4
    flooded.used = 0
    assert shares.common_used == sum(member.beyond_own for member in members[1:]), "its requests ended after it"


def test_a_share_is_that_of_the_server_whichever_front_takes_of_it() -> None:
    settings = Settings(request_memory=80_000, small_body=100, max_body=50_000)
    board = Board(2, 2)
    flooded, quiet = list[Share](), list[Share]()
    for front in (0, 1):
        shares = Shares(MemberQuota(settings, board.row(front), board.rows()))
        for slot, share in enumerate((shares.new(settings), shares.new(settings))):
            share.count_with(MemberBytes(board, front, slot))
            (flooded, quiet)[slot].append(share)
    while sum(share.take(1000, 1000) for share in flooded):
        pass
    assert 20_000 < sum(share.used for share in flooded) <= flooded[0].most_for_large
    assert abs(flooded[0].used - flooded[1].used) <= 1000
    assert all(share.take(10_000, 10_000) for share in quiet)
    assert quiet[0].used_by_all() == 20_000
    quiet[0].count_alone()
    assert (quiet[0].used_by_all(), quiet[1].used_by_all()) == (10_000, 10_000), "its slot is another model's soon"


def test_texts_of_several_models_are_one() -> None:
    one = '# HELP a what\n# TYPE a counter\na 1\n# HELP b more\n# TYPE b gauge\nb{x="y"} 2\n'
    text = merged([({}, "# HELP c own\n# TYPE c gauge\nc 3\n"), ({"model": "m"}, one), ({"model": "n"}, one)])
    assert text == (
        '# HELP c own\n# TYPE c gauge\nc 3\n'
        '# HELP a what\n# TYPE a counter\na{model="m"} 1\na{model="n"} 1\n'
        '# HELP b more\n# TYPE b gauge\nb{model="m",x="y"} 2\nb{model="n",x="y"} 2\n'
    )  # fmt: skip
