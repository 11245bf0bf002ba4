"""Stage times of inputs, one after the other."""

import time

KEYS = ("preprocess_time", "inference_time", "postprocess_time")


class Times:
    """Call `start`, then `stamp` at the end of each stage, then `end`, for every input.

    A stamp beyond the last key is stored under a name of its own, `stamps_4` and so on, of this object alone. The first
    `warmup` inputs do not count in `value`.
    """

    def __init__(self, keys=KEYS, warmup=0):
        self.warmup = int(warmup)
        self.set_keys(keys)

    def set_keys(self, keys):
        self.keys = list(keys)
        self.init()

    def init(self):
        """Forget everything."""
        self.count = 0
        self.times = {key: [] for key in self.keys}
        self.reset()

    def reset(self):
        """Forget the input that was begun."""
        self._last = None
        self._stamps = []

    def start(self, stamp=True):
        self.reset()
        if stamp:
            self._last = time.perf_counter()

    def stamp(self):
        now = time.perf_counter()
        if self._last is not None:
            self._stamps.append(now - self._last)
        self._last = now

    def end(self, stamp=False):
        """The input is done. With `stamp` what passed since the last stamp is a stage too."""
        if stamp:
            self.stamp()
        for at, seconds in enumerate(self._stamps):
            key = self.keys[at] if at < len(self.keys) else "stamps_%d" % (at + 1)
            self.times.setdefault(key, []).append(seconds)
        self.count += 1
        self.reset()

    def value(self, key=None, mode=None):
        """Seconds of one stage, or of each by name: all of them, or their "mean" or "sum", without warm-ups."""
        if key is None:
            return {name: self.value(name, mode) for name in self.times}
        measured = self.times[key][self.warmup :]
        if mode == "mean":
            return self.mean(measured)
        return self.sum(measured) if mode == "sum" else measured

    @staticmethod
    def mean(values):
        """None when there is nothing to take the mean of."""
        return sum(values) / len(values) if len(values) else None

    @staticmethod
    def sum(values):
        return sum(values)
