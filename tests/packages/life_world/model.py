"""Changes the world on request."""

import logging
import os
import signal
import subprocess
import threading

logging.basicConfig(level=logging.DEBUG, force=True)
signal.signal(signal.SIGTERM, lambda *_: None)
signal.signal(signal.SIGINT, lambda *_: None)
signal.signal(signal.SIGALRM, lambda *_: None)
lock = threading.Lock()
threading.Thread(target=lambda: (lock.acquire(), threading.Event().wait()), daemon=False).start()


def predict(request):
    if request == "spoil":
        os.chdir("/")
        os.umask(0)
        os.environ.clear()
        for number in (0, 1, 2):
            os.close(number)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGABRT, signal.SIG_IGN)
    if request == "litter":
        subprocess.Popen(["sleep", "600"])
        threading.Thread(target=threading.Event().wait, daemon=False).start()
    if request == "deadlock":
        lock.acquire()
    return {"cwd": os.getcwd(), "pid": os.getpid()}
