"""Prints as Python scripts do, as C libraries do, and by other programs; each in its own way."""

import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from cog import BasePredictor, Input

libc = ctypes.CDLL(None)
holding = ctypes.PyDLL(None)
"""The same library, called while this thread holds the interpreter: no other thread of Python runs meanwhile."""


def in_a_fork():
    print("from a forked process")


class Predictor(BasePredictor):
    def setup(self):
        libc.printf(b"a library sets up\n")

    def predict(self, how: str = Input(), size: int = Input(default=0), gate: str = Input(default="")) -> str:
        return str(getattr(self, how)(size, gate))

    def order(self, size, gate):
        print("one")
        os.write(1, b"two\n")
        print("three", file=sys.stderr)
        os.write(2, b"four\n")
        sys.stdout.buffer.write(b"five\n")
        print("six, ", end="")
        libc.write(1, "sieben ü\n".encode(), 10)
        print("eight")

    def buffered(self, size, gate):
        libc.printf(b"in the buffer of the library")

    def programs(self, size, gate):
        subprocess.run(["sh", "-c", "echo from a shell; echo an error >/dev/stderr; echo more >&2"], check=True)
        subprocess.run(["echo", "into our own stream"], stdout=sys.stdout, check=True)

    def fork(self, size, gate):
        child = multiprocessing.get_context("fork").Process(target=in_a_fork)
        child.start()
        child.join()
        return child.exitcode

    def much(self, size, gate):
        line = b"x" * 99 + b"\n"
        for _ in range(size // 100):
            holding.write(2, line, 100)

    def at_once(self, size, gate):
        # By now the text so far is due to be reported, while the library holds the lock of its own stream.
        time.sleep(0.6)
        libc.puts(b"y" * size)

    def alarms(self, size, gate):
        # What is read all the while, by another thread.
        program = subprocess.Popen(["sh", "-c", "while :; do echo; sleep 0.001; done"])
        before = signal.signal(signal.SIGALRM, lambda number, frame: print("alarm"))
        for number in range(size):
            # It rings at another point of this print each time.
            signal.setitimer(signal.ITIMER_REAL, number % 100 * 1e-6 + 1e-6)
            print(number)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        program.kill()
        program.wait()

    def slowly(self, size, gate):
        while not Path(gate).exists():
            os.write(2, b"\rdrawing:  50%|#####     | 4/8 [00:00<00:00]")
            time.sleep(0.05)

    def later(self, size, gate):
        subprocess.Popen(
            ["sh", "-c", "while [ ! -e '%s' ]; do sleep 0.02; done; echo much later; touch '%s.said'" % (gate, gate)]
        )

    def floods(self, size, gate):
        self.flood = subprocess.Popen(["yes", "flood"])
        print("flooded")

    def floods_end(self, size, gate):
        self.flood.kill()
        return self.flood.wait()

    def nothing(self, size, gate):
        return threading.active_count()

    def dies(self, size, gate):
        holding.write(2, b"last words of a library\n", 24)
        holding.abort()

    def closes(self, size, gate):
        os.close(1)
        os.close(2)
