"""auto_log and reprod_log as scripts import them: the published forms, without the published faults."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

from support import documents
from support.paddle import ALEXNET, PYTHONPATH, SHIMS, picture, python
from support.server import PACKAGES, panglot

LINE = re.compile(r"\[\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\] root INFO: ?(.*)")
BLOCK = """
import time
import auto_log
from paddle import inference
config = inference.Config("{model}/inference.json", "{model}/inference.pdiparams")
config.disable_gpu()
for memory in (False, True):
    if memory:
        config.enable_memory_optim()
    autolog = auto_log.AutoLogger(model_name="classification", batch_size=1, inference_config=config)
    for _ in range(3):
        autolog.times.start()
        time.sleep(0.002)
        autolog.times.stamp()
        time.sleep(0.01)
        autolog.times.stamp()
        autolog.times.stamp()
        autolog.times.end(stamp=True)
    autolog.report()
print("and it goes on")
"""


@pytest.fixture
def shims(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SHIMS))


def printed(text: str) -> list[str]:
    return [found.group(1) for line in text.splitlines() if (found := LINE.fullmatch(line))]


def sample() -> list[str]:
    """The block that the document shows."""
    return printed(documents.text("paddle"))


@pytest.fixture(scope="module")
def blocks(alexnet: Path) -> tuple[list[str], list[str], str]:
    """The reports of two loggers in one process, and all that was printed."""
    text = python("-c", BLOCK.format(model=alexnet), shims=True)
    lines = printed(text)
    assert len(lines) == 2 * 28, "each line once, for the second logger too"
    return lines[:28], lines[28:], text


@pytest.mark.document("paddle.28")
@documents.needed
def test_the_block_field_by_field(blocks: tuple[list[str], list[str], str]) -> None:
    shown = sample()
    assert len(shown) == 28
    for own, theirs in zip(blocks[0], shown, strict=True):
        names, values = fields(own), fields(theirs)
        assert list(names) == list(values), (own, theirs)
        for name in names:
            assert kind(names[name]) == kind(values[name]) or "None" in (names[name], values[name]), (name, own, theirs)
        if not values:
            assert own.strip() == theirs.strip(), "headings and dashes are the same"


def fields(line: str) -> dict[str, str]:
    return dict(re.findall(r"([\w()]+): ([^,]+)", line))


def kind(value: str) -> str:
    value = value.rstrip("%")
    return "number" if re.fullmatch(r"\d+(\.\d+)?", value) else "switch" if value in ("True", "False") else "text"


@pytest.mark.document("paddle.23", "paddle.29")
def test_the_values_are_true(blocks: tuple[list[str], list[str], str]) -> None:
    first, second = ({name: value for line in block for name, value in fields(line).items()} for block in blocks[:2])
    assert first["enable_memory_optim"] == "False"
    assert second["enable_memory_optim"] == "True"
    assert first["runtime_device"] == "cpu"
    assert first["paddle_version"] == "3.3.1"
    assert re.fullmatch("[0-9a-f]{40}", first["paddle_commit"])
    assert first["data_num"] == "3"
    assert float(first["cpu_rss(MB)"]) > 50
    assert float(first["preprocess_time(ms)"]) >= 2
    assert float(first["inference_time(ms)"]) >= 10
    total = sum(float(first[f"{stage}_time(ms)"]) for stage in ("preprocess", "inference", "postprocess"))
    assert float(first["total time spent(s)" if "total time spent(s)" in first else "spent(s)"]) == pytest.approx(
        3 * total / 1000, rel=0.02
    )
    assert blocks[2].rstrip().endswith("and it goes on"), "report ends nothing"


def test_times(shims: None) -> None:
    from auto_log import Times

    times = Times(keys=["a", "b"], warmup=1)
    for _ in range(3):
        times.start()
        times.stamp()
        times.stamp()
        times.end(stamp=True)
    assert times.keys == ["a", "b"], "a further stamp is nobody's key"
    assert len(times.value("a")) == 2
    assert len(times.value("stamps_3")) == 2
    assert times.value("a", "sum") == sum(times.value("a"))
    assert times.value("b", "mean") == sum(times.value("b")) / 2
    assert set(times.value(mode="sum")) == {"a", "b", "stamps_3"}
    assert Times().keys == ["preprocess_time", "inference_time", "postprocess_time"]
    empty = Times(warmup=5)
    empty.start()
    empty.stamp()
    empty.end()
    assert empty.value("preprocess_time", "mean") is None, "no ValueError when all runs are warm-ups"
    times.set_keys(["c"])
    assert times.value() == {"c": []}


@pytest.mark.document("paddle.27")
@pytest.mark.parametrize(
    ("visible", "expected"), [(None, 0), ("0,1", 0), ("10", 10), ("", None), ("-1", None), ("GPU-8a", "GPU-8a")]
)
def test_which_card(shims: None, monkeypatch: pytest.MonkeyPatch, visible: str | None, expected: Any) -> None:
    from auto_log import get_infer_gpuid

    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert get_infer_gpuid() == expected


def test_loggers_of_every_kind(
    shims: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dicts or nothing for a config, a file, a tag, keys of one's own; no card and no Paddle are no reason to hang."""
    monkeypatch.setitem(sys.modules, "paddle", None)
    import auto_log

    given = {"runtime_device": "cpu", "ir_optim": True, "precision": "int8", "enable_mkldnn": False}
    logger = auto_log.AutoLogger(
        "m", inference_config=given, save_path=str(tmp_path / "deep" / "log.txt"), gpu_ids="auto", time_keys=["all"]
    )
    logger.times.start()
    logger.times.end(stamp=True)
    logger.report(identifier="tag")
    text = capsys.readouterr().out
    assert " [tag] runtime_device: cpu" in text
    assert " [tag] enable_tensorrt: None" in text
    assert " [tag] precision: int8" in text
    assert re.search(r"\[tag\] all\(ms\): \d", text)
    assert (tmp_path / "deep" / "log.txt").read_text().count("Env info") == 1
    auto_log.AutoLogger("m").report()
    assert " ir_optim: None" in capsys.readouterr().out
    with pytest.raises(TypeError, match="surprise"):
        auto_log.AutoLogger("m", surprise=1)
    logger.print_help()
    assert {"paddle_version", "paddle_commit"} == set(logger.get_paddle_info())
    assert {"OS_version", "CUDA_version", "CUDNN_version", "drivier_version"} == set(auto_log.get_env_info())


@pytest.mark.document("paddle.20")
def test_logs_are_written_and_read_both_ways(shims: None, tmp_path: Path) -> None:
    from reprod_log import ReprodDiffHelper, ReprodLogger

    logger = ReprodLogger()
    logger.add("class_id", numpy.array([7]))
    logger.add("prob", numpy.array([0.25], "float32"))
    logger.add("gone", numpy.zeros(1))
    logger.remove("gone")
    logger.remove("gone")
    logger.save(str(tmp_path / "own"))
    theirs = numpy.load(tmp_path / "own.npy", allow_pickle=True).tolist()
    assert theirs["prob"].dtype == "float32"
    numpy.save(tmp_path / "theirs.npy", theirs)
    assert ReprodDiffHelper().load_info(str(tmp_path / "theirs.npy"))["class_id"].tolist() == [7]
    with pytest.raises(TypeError, match="must be a numpy array, not float"):
        logger.add("x", 0.5)
    with pytest.raises(FileNotFoundError, match="there is .*own.npy"):
        ReprodDiffHelper().load_info(str(tmp_path / "own"))
    logger.clear()
    assert logger.data == {}


class Harm:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch /tmp/panglot-was-here",)


def test_a_log_is_arrays_and_nothing_else(shims: None, tmp_path: Path) -> None:
    from reprod_log import ReprodDiffHelper

    with open(tmp_path / "bad.npy", "wb") as file:
        numpy.lib.format.write_array_header_1_0(file, {"descr": "|O", "fortran_order": False, "shape": ()})
        pickle.dump({"a": Harm()}, file)
    with pytest.raises(ValueError, match=r"posix.system, which is no array"):
        ReprodDiffHelper().load_info(str(tmp_path / "bad.npy"))
    numpy.save(tmp_path / "plain.npy", numpy.zeros(3))
    with pytest.raises(ValueError, match="not a log of named arrays"):
        ReprodDiffHelper().load_info(str(tmp_path / "plain.npy"))


def report(one: Any, other: Any, folder: Path, **options: Any) -> tuple[bool, str]:
    from reprod_log import ReprodDiffHelper

    helper = ReprodDiffHelper()
    helper.compare_info(one, other)
    verdict = helper.report(path=str(folder / "out" / "diff.txt"), **options)
    return verdict, (folder / "out" / "diff.txt").read_text()


@pytest.mark.document("paddle.21")
def test_verdicts(shims: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = {"prob": numpy.array([0.5, 0.25]), "class_id": numpy.array([3])}
    other = {"prob": numpy.array([0.5, 0.25 + 1e-7]), "class_id": numpy.array([3])}
    verdict, text = report(one, other, tmp_path)
    assert verdict
    assert text.rstrip().endswith("diff check passed")
    assert "mean diff: check passed: True, value: 5" in text
    assert capsys.readouterr().out == text, "the screen shows each line once"
    verdict, text = report(one, other, tmp_path, diff_method="all", diff_threshold=1e-8)
    assert not verdict
    assert text.rstrip().endswith("diff check failed")
    assert "max diff: check passed: False" in text
    assert "min diff: check passed: True" in text
    assert "diff check passed" not in text, "the file is new each time"


def test_differences_that_are_no_small_ones(shims: None, tmp_path: Path) -> None:
    """NaN, bytes that wrap around, other shapes, other names."""
    assert not report({"a": numpy.array([numpy.nan])}, {"a": numpy.array([1.0])}, tmp_path)[0]
    assert "value: 1.0" in report({"a": numpy.array([1], "uint8")}, {"a": numpy.array([2], "uint8")}, tmp_path)[1]
    assert report({"a": numpy.ones((2, 3))}, {"a": numpy.ones((3, 2))}, tmp_path)[0], "a matrix turned over"
    assert report({"a": numpy.array(["x"])}, {"a": numpy.array(["x"])}, tmp_path)[0]
    with pytest.raises(ValueError, match="shapes"):
        report({"a": numpy.ones((2, 3))}, {"a": numpy.ones((1, 3))}, tmp_path)
    with pytest.raises(ValueError, match="only one of the two has b"):
        report({"a": numpy.ones(1), "b": numpy.ones(1)}, {"a": numpy.ones(1)}, tmp_path)


def test_a_real_package_wins(tmp_path: Path) -> None:
    """What the script's folder or environment has comes before ours."""
    from support.server import serving

    for name in ("infer.py", "settings.py"):
        (tmp_path / name).write_text((PACKAGES / "paddle_text" / name).read_text())
    text = (tmp_path / "infer.py").read_text()
    (tmp_path / "infer.py").write_text(
        "import auto_log, reprod_log\n" + text.replace('"count": len(x)', '"count": auto_log.VALUE')
    )
    (tmp_path / "auto_log.py").write_text("VALUE = 'real'\n")
    with serving(tmp_path) as server:
        assert server.predict({"text": "a"}).json() == {"words": ["a"], "count": "real"}


# panglot shims paddle


def started(python: str, path: str, code: str) -> str:
    done = subprocess.run([python, "-c", code], env={"PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_auto_log_is_there_also_where_reprod_log_is_installed(tmp_path: Path) -> None:
    path = panglot("shims", "paddle").stdout.strip()
    assert path == PYTHONPATH
    python("-m", "venv", "--without-pip", str(tmp_path))
    [site] = tmp_path.glob("lib/python*/site-packages")
    (site / "reprod_log.py").write_text("VALUE = 'real'\n")
    code = "import auto_log, reprod_log; print(reprod_log.VALUE, auto_log.AutoLogger.__name__)"
    assert started(str(tmp_path / "bin" / "python"), path, code) == "real AutoLogger\n"


def test_another_sitecustomize_still_runs(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import builtins\nbuiltins.here = 'theirs'\n")
    assert started(sys.executable, f"{PYTHONPATH}:{tmp_path}", "print(here)") == "theirs\n"
    (tmp_path / "sitecustomize.py").unlink()
    assert started(sys.executable, f"{PYTHONPATH}:{tmp_path}", "print('fine')") == "fine\n"


@pytest.mark.document("paddle.09", "paddle.20")
def test_a_plain_run_takes_what_paddle_3_exports(alexnet: Path, tmp_path: Path) -> None:
    """The script names inference.pdmodel, and Paddle 3 wrote inference.json."""
    assert not (alexnet / "inference.pdmodel").exists()
    script = str(ALEXNET / "deploy" / "inference_python" / "infer.py")
    image = str(picture(tmp_path / "a.png", 5))
    text = python(script, "--model-dir", str(alexnet), "--img-path", image, cwd=tmp_path, shims=True)
    assert "class_id" in text
    # What the server's own tool saves is what the script saves, to the last bit; both checks take it.
    words = ("run", script, image, "--save", str(tmp_path / "served.npy"), "--", "--model-dir", str(alexnet))
    done = panglot(*words, seconds=110)
    assert done.returncode == 0, done.stderr
    theirs = numpy.load(tmp_path / "output_inference_engine.npy", allow_pickle=True).item()
    ours = numpy.load(tmp_path / "served.npy", allow_pickle=True).item()
    assert {key: (array.shape, array.dtype) for key, array in ours.items()} == {
        "class_id": ((1,), numpy.dtype("int64")),
        "prob": ((1,), numpy.dtype("float32")),
    }
    assert theirs == ours
    files = [str(tmp_path / name) for name in ("served.npy", "output_inference_engine.npy")]
    assert panglot("check", *files, "--atol", "0", "--rtol", "0").returncode == 0
    code = (
        "from reprod_log import ReprodDiffHelper\nhelper = ReprodDiffHelper()\n"
        f"helper.compare_info(*map(helper.load_info, {files!r}))\nprint(helper.report(diff_threshold=0))"
    )
    assert "diff check passed" in python("-c", code, cwd=tmp_path, shims=True)


def test_a_plain_run_says_what_is_wrong_with_a_model(tmp_path: Path) -> None:
    code = "from paddle.inference import Config\nConfig('inference.pdmodel', 'inference.pdiparams')"
    with pytest.raises(AssertionError, match=r"no exported model inference.pdmodel \(fix: export the model into"):
        python("-c", code, cwd=tmp_path, shims=True)
