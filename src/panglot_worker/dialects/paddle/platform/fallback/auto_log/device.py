"""Memory and use of the processor and of graphics cards."""

import os
import platform
import threading

from auto_log.env import said

MB = 1024 * 1024
EVERY = 0.2


def get_infer_gpuid():
    """The first card this process may use, by number or by UUID; None when it may use none."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    first = "0" if visible is None else visible.split(",")[0].strip()
    if not first or first == "-1":
        return None
    return int(first) if first.isdigit() else first


class CpuInfo:
    """The processor."""

    def __init__(self):
        self.name = platform.processor() or platform.machine()
        self.count = os.cpu_count()


class MemInfo:
    """The memory of a process, in MB; None when it has gone."""

    def __init__(self, pid=None):
        self.pid = os.getpid() if pid is None else int(pid)

    def rss(self):
        try:
            with open("/proc/%d/statm" % self.pid) as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MB
        except (OSError, ValueError, IndexError):
            return None


class GpuInfo:
    """A graphics card, by number or UUID: memory in use in MB, and utilisation; None for what is not known."""

    def __init__(self, gpu_id=0):
        self.gpu_id = gpu_id

    def used(self):
        """Return the megabytes in use and the utilisation in per cent of the GPU, or None for both where nvidia-smi
        says nothing.
        """
        query = "--query-gpu=memory.used,utilization.gpu"
        line = said("nvidia-smi", "-i", str(self.gpu_id), query, "--format=csv,noheader,nounits").strip()
        try:
            memory, use = line.splitlines()[0].split(",")
            return float(memory), float(use)
        except (ValueError, IndexError):
            return None, None


GpuInfoV2 = GpuInfo


class SubprocessGetMem:
    """Watches the memory of a process, and of a card, from `start` to `end`; what it keeps is the most it saw."""

    def __init__(self, pid, gpu_id=None):
        self.process = MemInfo(pid)
        self.gpu = None if gpu_id is None else GpuInfo(gpu_id)
        self.most = {"cpu_rss": None, "gpu_rss": None, "gpu_util": None}
        self._stop = threading.Event()
        self._thread = None

    def start(self):
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()

    def _watch(self):
        while not self._stop.wait(EVERY):
            self.sample()

    def sample(self):
        memory, use = (None, None) if self.gpu is None else self.gpu.used()
        for name, value in (("cpu_rss", self.process.rss()), ("gpu_rss", memory), ("gpu_util", use)):
            known = self.most[name]
            if value is not None and (known is None or value > known):
                self.most[name] = value

    def end(self):
        """The most it saw, with one last look."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(5)
        self.sample()
        return dict(self.most)
