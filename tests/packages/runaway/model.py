"""Starts a process that outlives whoever does not look for it, and says which."""

import os
import subprocess
import sys
import time

DAEMON = """
import os, sys
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
print(os.getpid(), flush=True)
os.close(1)
os.execvp("sleep", ["sleep", sys.argv[1]])
"""


def session(seconds):
    return subprocess.Popen(["sleep", seconds], start_new_session=True).pid


def daemon(seconds):
    return int(subprocess.run([sys.executable, "-c", DAEMON, seconds], stdout=subprocess.PIPE).stdout)


def grandchild(seconds):
    """A session's own child, in a session of its own."""
    code = f"import subprocess; print(subprocess.Popen(['setsid', 'sleep', '{seconds}'], stdout=2).pid, flush=True)"
    process = subprocess.Popen(
        [sys.executable, "-c", code + "; import time; time.sleep(300)"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    return int(process.stdout.readline())


def bare(seconds):
    """Neither in the session nor with the environment."""
    return subprocess.Popen(["sleep", seconds], start_new_session=True, env={}).pid


def predict(request):
    if request == "die":
        os._exit(1)
    if request == "wait":
        time.sleep(300)
    kind, seconds = request
    return globals()[kind](seconds)
