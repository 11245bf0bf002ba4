"""Times of a handler's steps, where model-config.yaml says `handler: {profile: true}`."""

import functools
import time


def timed(func):
    """Measure how long a method of a handler takes, as the metric `ts_handler_METHOD`."""

    @functools.wraps(func)
    def wrapped(self, *args, **kwargs):
        context = self.context
        section = context.model_yaml_config.get("handler") if context else None
        if not isinstance(section, dict) or not section.get("profile"):
            return func(self, *args, **kwargs)
        started = time.perf_counter()
        result = func(self, *args, **kwargs)
        context.metrics.add_time("ts_handler_" + func.__name__, (time.perf_counter() - started) * 1000)
        return result

    return wrapped
