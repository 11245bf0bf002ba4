"""One case for each way in which predictors of Cog use their inputs and give outputs."""

import dataclasses
import datetime
import enum
import os
import signal
import sys
import threading
from typing import Any, List

import cog
from cog import BasePredictor, File, Input, Path
from src.helper import WORD

ARGUMENTS = len(sys.argv)


class Color(enum.Enum):
    RED = "red"


class Word(str, enum.Enum):
    HELLO = "hello"


@dataclasses.dataclass
class Point:
    x: int
    y: float


def word_of(file):
    content = file.read()
    return content.decode() if isinstance(content, bytes) else content


class Cases(BasePredictor):
    def setup(self):
        self.calls = 0
        self.seen = ""

    def predict(
        self,
        case: str,
        text: str = "x",
        whole: int = 1,
        real: float = 1.0,
        flag: bool = False,
        path: Path = Input(default=None),
        file: File = Input(default=None),
        texts: List[str] = Input(default=["a"]),
        wholes: List[int] = Input(default=[]),
    ) -> Any:
        self.calls += 1
        return getattr(self, case)(text=text, whole=whole, real=real, flag=flag, path=path, file=file,
                                   texts=texts, wholes=wholes)  # fmt: skip

    # Inputs

    def inputs(self, text, whole, real, flag, texts, wholes, **_):
        return [text, whole, real, flag, texts, wholes]

    def types(self, text, whole, real, flag, texts, **_):
        return [type(each).__name__ for each in (text, whole, real, flag, texts)]

    def named(self, path, **_):
        self.seen = str(path)
        return [path.name[-8:], path.suffix, path.read_text(), isinstance(path, cog.Path), path.is_absolute()]

    def length(self, path, **_):
        return [len(path.name.encode()) <= 255, path.suffix, os.path.getsize(path)]

    def is_there(self, **_):
        return os.path.exists(self.seen)

    def opened(self, file, **_):
        return word_of(file)

    def long(self, text, **_):
        return text + "!"

    # Where it runs

    def place(self, **_):
        in_package = os.path.basename(os.getcwd()) == "cog_cases" or os.path.exists("cog.yaml")
        return [in_package, WORD, ARGUMENTS, threading.current_thread() is threading.main_thread()]

    def signals(self, **_):
        before = signal.signal(signal.SIGUSR2, lambda *_: self.__setattr__("heard", True))
        self.heard = False
        os.kill(os.getpid(), signal.SIGUSR2)
        signal.signal(signal.SIGUSR2, before)
        return self.heard

    def joined(self, **_):
        path = Path("/tmp") / "a" / "b.txt"
        return [
            str(path),
            isinstance(path, Path),
            path.name,
            isinstance(path.parent, Path),
            str(path.with_suffix(".x")),
        ]

    # Outputs

    def enums(self, **_):
        return [Color.RED, Word.HELLO]

    def moments(self, **_):
        return [datetime.datetime(2026, 1, 2, 3, 4, 5), datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc)]

    def arrays(self, **_):
        import numpy

        return {"array": numpy.arange(4).reshape(2, 2), "number": numpy.float32(1.5), "whole": numpy.int64(3)}

    def containers(self, **_):
        return {"set": {1}, "tuple": (1, "a", None), "frozen": frozenset(["b"]), "made": (each for each in "cd")}

    def deep(self, **_):
        return {"a": [{"b": [[1, 2], {"c": None}]}], "d": {"e": {"f": True}}}

    def dataclass(self, **_):
        return {"point": Point(1, 2.5), "points": [Point(0, 0.0)]}

    def texts(self, **_):
        return ["", "\u00fc \u4e2d \U0001f600", 'quote " and \\', "a\nb\tc"]

    def numbers(self, **_):
        return [0, -1, 2**53, 1.5, 1e300, -0.5, True]

    def nothing(self, **_):
        return None

    def picture(self, **_):
        return self._file("picture.png", b"\x89PNG")

    def pictures(self, **_):
        return {"one": self._file("one.jpg", b"1"), "more": [self._file("two.gif", b"2"), self._file("three", b"3")]}

    def _file(self, name, content):
        path = Path("/tmp") / ("cog-cases-%d" % os.getpid())
        path.mkdir(exist_ok=True)
        (path / name).write_bytes(content)
        return path / name

    # Failures

    def value_error(self, text, **_):
        raise ValueError(text)

    def key_error(self, **_):
        return {}["missing"]

    def own_error(self, **_):
        class OwnError(Exception):
            def __str__(self):
                return "of its own"

        raise OwnError

    def chained(self, **_):
        try:
            self.key_error()
        except KeyError as error:
            raise RuntimeError("while it predicted") from error

    def prints_and_fails(self, **_):
        print("before it failed")
        raise RuntimeError("failed")

    def gone(self, **_):
        return Path("/nowhere/gone.txt")

    def closed(self, **_):
        with open(self._file("closed.txt", b"hi")) as file:
            return {"file": file}
