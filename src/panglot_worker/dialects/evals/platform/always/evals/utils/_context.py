"""What a script may learn about the call it is in."""

import threading


class _Context(threading.local):
    """`app` is one for the process, since only `create_net` sets it; `reqID` and `logger` are the thread's own."""

    _shared = {}

    @property
    def app(self):
        try:
            return self._shared["app"]
        except KeyError:
            raise AttributeError("app") from None

    @app.setter
    def app(self, value):
        self._shared["app"] = value


CTX = _Context()
