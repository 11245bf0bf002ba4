"""What is taken for a package of evals, where its parts may lie, and what is said about sources for Python 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from panglot.dialects import discover
from panglot.dialects.evals.python2 import offences
from panglot.errors import StartError
from panglot.packages.package import Package
from support.evals import GOOD, package, result, returning, single
from support.server import panglot, serving

SIMPLE = returning(GOOD % 1)
PLAIN = """
def create_net(configs):
    return {}, 0, ''


def net_inference(model, reqs):
    return [{} for _ in reqs], 0, ''
"""


def found(path: Path) -> Package:
    return discover(path)


@pytest.mark.parametrize("script", [SIMPLE, PLAIN])
def test_a_folder_with_eval_py(tmp_path: Path, script: str) -> None:
    assert found(package(tmp_path, script)).dialect == "evals"


def test_a_script_of_any_name(tmp_path: Path) -> None:
    package(tmp_path, SIMPLE, "eval-text-detection.py", other__py="import os\n")
    for path in (tmp_path, tmp_path / "eval-text-detection.py"):
        assert (found(path).dialect, found(path).name) == ("evals", "eval-text-detection")


DECORATED = """
from evals.utils import net_inference_handler as serve_with
from evals import utils


@utils.create_net_handler
def start(configs):
    return {"started": True}, 0, ""


def create_net(configs):
    raise RuntimeError("this one is not decorated")


@utils.net_preprocess_handler
def prepare(model, req):
    return dict(req, params={"prepared": True}), 0, ""


@serve_with
def answer(model, reqs):
    return [{"code": 0, "message": "", "result": dict(req["params"], **model)} for req in reqs], 0, ""
"""


@pytest.mark.document("evals.03")
@pytest.mark.parametrize("where", ["script", "helper"])
def test_functions_are_known_by_their_decorators(tmp_path: Path, where: str) -> None:
    toml = "[evals]\nnet_preprocess = true\n"
    script = DECORATED if where == "script" else "from evals.impl import start, prepare, answer\n"
    folder = package(tmp_path, script, panglot__toml=toml, impl__py=DECORATED)
    assert found(folder).entry == "start, answer"
    with serving(folder) as server:
        assert result(server, single()) == {"prepared": True, "started": True}


def test_two_functions_with_one_decorator(tmp_path: Path) -> None:
    twice = DECORATED + "\n\n@serve_with\ndef other(model, reqs):\n    return [], 0, ''\n"
    done = panglot("serve", str(package(tmp_path, twice)), "--port", "0")
    assert done.returncode == 3
    assert "answer and other all have the decorator net_inference_handler" in done.stderr
    assert "call one of them net_inference" in done.stderr


def test_two_scripts(tmp_path: Path) -> None:
    package(tmp_path, SIMPLE, "one.py", two__py=SIMPLE)
    with pytest.raises(StartError, match="one.py and two.py could each be the script.*fix: name one"):
        found(tmp_path)


@pytest.mark.parametrize("place", ["", "evals", "python/evals"])
def test_places_of_the_script(tmp_path: Path, place: str) -> None:
    package(tmp_path / place, SIMPLE)
    assert found(tmp_path).folder == tmp_path / place


def test_an_evaluation_script_is_not_ours(tmp_path: Path) -> None:
    """Many folders of plain scripts have an eval.py that measures something."""
    package(tmp_path, "print('accuracy')\n", model__py="def predict(request):\n    return 1\n")
    assert found(tmp_path).dialect == "plain"


@pytest.mark.parametrize(
    ("script", "missing"),
    [
        ("from evals.utils import *\n\n\ndef net_inference(model, reqs):\n    pass\n", "create_net"),
        ("from evals.utils import *\n\n\ndef create_net(configs):\n    pass\n", "net_inference"),
    ],
)
def test_a_function_is_missing(tmp_path: Path, script: str, missing: str) -> None:
    with pytest.raises(StartError, match=rf"eval.py: there is no {missing} in it \(fix: define {missing}\("):
        found(package(tmp_path, script))


def test_functions_may_come_from_elsewhere(tmp_path: Path) -> None:
    script = "from other import *\nfrom evals.utils import CTX\n"
    with serving(package(tmp_path, script, other__py=SIMPLE)) as server:
        assert result(server, single()) == 1


# The platform's images

PLATFORM_UTILS = "print 'Python 2 of the platform'\n"
HELPERS = """
import util_infe
from src.cfg import NAME
from evals.src.cfg import NAME as SAME
from evals.video_classify.lower import upper
from custom.tool import TOOL
import cfg
"""


def image(folder: Path, script: str) -> Path:
    """A folder as the platform's images had it: its own framework for Python 2 beside the script."""
    files: dict[str, str | bytes] = {
        "python/evals/eval.py": script,
        "python/evals/__init__.py": "",
        "python/evals/utils/__init__.py": PLATFORM_UTILS,
        "python/evals/utils/error.py": PLATFORM_UTILS,
        "python/inference_py.py": PLATFORM_UTILS,
        "python/inference_pb2.py": PLATFORM_UTILS,
        "python/evals/util_infe.py": "import deeper\nVALUE = deeper.VALUE\n",
        "python/evals/deeper.py": "VALUE = 'deeper'\n",
        "python/evals/src/__init__.py": "",
        "python/evals/src/cfg.py": "NAME = 'configured'\n",
        "python/evals/video_classify/__init__.py": "",
        "python/evals/video_classify/lower.py": "import upper\n",
        "python/evals/video_classify/upper.py": "WORD = 'implicit'\n",
        "python/custom/__init__.py": "",
        "python/custom/tool.py": "TOOL = 'beside evals'\n",
        "serving-eval.conf": '{"http_port": "43660", "run_mode": "standalone", "release": {"batch_size": 3}}',
        "inference.so": b"\x7fELF",
    }
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


SEEN = "[util_infe.VALUE, NAME, SAME, upper.WORD, TOOL, cfg.NAME, __file__.split('/')[-2:]]"


@pytest.mark.document("evals.38", "evals.40")
def test_an_image_of_the_platform(tmp_path: Path) -> None:
    folder = image(tmp_path, returning(GOOD % SEEN, HELPERS))
    known = found(folder)
    assert known.defaults["port"] == 43660
    assert known.options["batch_size"] == 3
    assert known.facts["not_taken"] == ["python/evals/utils: Panglot's own is used"]
    assert "python/evals/deeper.py" in known.facts["helpers"]
    with serving(folder) as server:
        assert result(server, single()) == [
            "deeper", "configured", "configured", "implicit", "beside evals", "configured", ["evals", "eval.py"],
        ]  # fmt: skip
    assert found(folder / "python" / "evals" / "eval.py").folder == folder / "python" / "evals"


@pytest.mark.document("evals.41")
def test_a_folder_with_a_copy_of_the_platform_beside_the_script(tmp_path: Path) -> None:
    folder = package(tmp_path, returning(GOOD % "ErrorConfig(1).code"), evals___utils___error__py=PLATFORM_UTILS)
    for name in ("evals", "evals/utils"):
        (folder / name / "__init__.py").write_text(PLATFORM_UTILS)
    with serving(folder) as server:
        assert result(server, single()) == 400


OWN_HELPERS = """
import lib
import utils
from utils import twice
from evals.utils import value_check
"""


@pytest.mark.document("evals.43")
@pytest.mark.parametrize("utils", ["utils.py", "utils/__init__.py"])
def test_helpers_with_common_names_are_the_package_s_own(tmp_path: Path, utils: str) -> None:
    script = returning(GOOD % "[lib.NAME, utils.NAME, twice(2), value_check({'a': 1}, 'a')]", OWN_HELPERS)
    folder = package(tmp_path, script, lib__py="NAME = 'own lib'\n")
    path = folder / utils
    path.parent.mkdir(exist_ok=True)
    path.write_text("NAME = 'own utils'\ndef twice(n): return 2 * n\n")
    assert sorted(found(folder).facts["helpers"]) == ["lib.py", utils]
    assert found(folder).facts["not_taken"] == []
    with serving(folder) as server:
        assert result(server, single()) == ["own lib", "own utils", 4, 1]


# Sources for Python 2

OLD = """
import sys
reload(sys)
sys.setdefaultencoding("utf-8")


def old():
    assert isinstance(u"text", unicode) and isinstance("text", basestring)
    assert unichr(65) == "A" and cmp(1, 2) == -1 and reduce(lambda a, b: a + b, [1, 2, 3]) == 6
    return [n for n in xrange(3)] + [long(4)]
"""


def test_old_names_work_in_the_package_s_modules(tmp_path: Path) -> None:
    script = returning(GOOD % "[old(), helper.RANGE]", OLD + "\nimport helper\n")
    with serving(package(tmp_path, script, helper__py="RANGE = list(xrange(2))\n")) as server:
        assert result(server, single()) == [[0, 1, 2, 4], [0, 1]]


def test_old_names_stay_in_the_package(tmp_path: Path) -> None:
    """Libraries ask for them to find out which Python they run on."""
    before = "import builtins, textwrap\nNAMES = [n for n in ('xrange', 'unicode', 'reload') if hasattr(builtins, n)]"
    with serving(package(tmp_path, returning(GOOD % "[NAMES, 'xrange' in textwrap.__builtins__]", before))) as server:
        assert result(server, single()) == [[], False]


CONSTRUCTS = {
    'print "x"': "print statement",
    "print x, y": "print statement",
    "print >>sys.stderr, x": "print statement",
    "if a: print a": "print statement",
    "except ValueError, e:": "except with a comma",
    "except (A, B), e:": "except with a comma",
    'raise ValueError, "x"': "raise with a comma",
    "x = `y`": "backquotes",
    "if a <> b:": "the operator <>",
    'exec "x = 1"': "exec statement",
    "os.chmod(p, 0755)": "a number of Python 2",
    "x = 10L": "a number of Python 2",
    'x = ur"\\d"': "a ur string",
}
FINE = (
    "print(x)", "print (x)", "print", "x = print", "printer = 1", "except ValueError as e:", "except (A, B):",
    "raise ValueError(a, b)", "raise", "x = 'print a'", "# print a", "x = a < b > c", "exec(x)", "x = 0", "x = 0.5",
    "x = 00", "x = 0o755", "x = a0755", "x = 1.0755", "'''\nprint a\n'''", "x = r'`'", "call(a, print=1)", "x = 0x10",
)  # fmt: skip


@pytest.mark.parametrize("line", CONSTRUCTS)
def test_constructs_of_python_2(line: str) -> None:
    assert [what.partition(":")[0] for _, what in offences(f"x = 1\n{line}\n")] == [CONSTRUCTS[line]]
    assert offences(f"x = 1\n{line}\n")[0][0] == 2


@pytest.mark.parametrize("line", [line for line in FINE if line != "x = 00"])
def test_what_is_no_construct_of_python_2(line: str) -> None:
    assert offences(line) == []


OFFENDING = (
    SIMPLE + '\n\ndef more(a):\n    print "a", a\n    try:\n        pass\n    except ValueError, e:\n        pass\n'
)


@pytest.mark.parametrize("where", ["eval.py", "helper.py"])
def test_sources_only_python_2_reads(tmp_path: Path, where: str) -> None:
    """Every line to change, in the script or in a helper it imports; nothing is run."""
    script = OFFENDING if where == "eval.py" else returning(GOOD % 1, "import helper")
    folder = package(tmp_path, script, helper__py=OFFENDING)
    done = panglot("serve", str(folder), "--port", "0")
    assert done.returncode == 3
    lines = OFFENDING.splitlines()
    first = lines.index('    print "a", a') + 1
    assert f"{where}:{first}: this is Python 2" in done.stderr
    assert f'{where}:{first}: print "a", a\n      print statement: write print(...)' in done.stderr
    assert (
        f"{where}:{first + 3}: except ValueError, e:\n      except with a comma: write except Error as name:"
        in done.stderr
    )
    assert "SyntaxError" not in done.stderr
    assert "Traceback" not in done.stderr


def test_a_source_nobody_reads(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"eval.py:\d+: [^\n]*may be Python 2[^\n]*\n.*eval.py:\d+: def broken"):
        found(package(tmp_path, SIMPLE + "\n\ndef broken(:\n    pass\n"))
