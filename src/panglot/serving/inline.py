"""`--inline`: the script has the main thread of this process, the server another thread, so that breakpoints work."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import uvloop

if TYPE_CHECKING:
    from panglot.serving.server import Serving


def run_inline(make: Callable[[], Serving]) -> None:
    """Serve until the script or a signal ends it. Raises what the server raised."""
    from panglot_worker.life.loop import work
    from panglot_worker.line.port import FrontGone, Port

    front_end, worker_end = socket.socketpair()
    side = ServerThread(make, front_end)
    # Python calls handlers on the main thread alone, so the loop of the server cannot listen to signals itself.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: side.interrupt())
    side.start()
    try:
        work(Port(worker_end), own_process=False)
    except (FrontGone, ConnectionError, KeyboardInterrupt):
        pass
    finally:
        worker_end.close()
        side.stop()
        side.join()
    if side.error is not None:
        raise side.error


class ServerThread(threading.Thread):
    """Runs the server: everything but the script."""

    def __init__(self, make: Callable[[], Serving], link: socket.socket) -> None:
        super().__init__(name="panglot-server", daemon=True)
        self.make = make
        self.link = link
        self.error: BaseException | None = None
        self.interrupts = 0
        self.is_stopped = False
        self.serving: Serving | None = None
        self.loop = uvloop.new_event_loop()

    def run(self) -> None:
        try:
            self.loop.run_until_complete(self._serve())
        except BaseException as error:  # noqa: BLE001  raised again in the main thread
            self.error = error
        finally:
            self.link.close()

    async def _serve(self) -> None:
        self.serving = self.make()
        self.serving.model_host.engines[0].main.supervisor.launcher.inline = self.link
        # `stop` sets `is_stopped`, then looks at `serving`. Here it is the other way round, so no stop is missed.
        if self.is_stopped:
            self.serving.stop()
        await self.serving.run()

    def interrupt(self) -> None:
        """Act on a signal, on the main thread: drain; the second time, also interrupt the script."""
        self.interrupts += 1
        self.stop()
        if self.interrupts > 1:
            raise KeyboardInterrupt

    def stop(self) -> None:
        """Let the server drain and end, also when it has not been made yet."""
        self.is_stopped = True
        if self.serving is not None and self.is_alive():
            self.loop.call_soon_threadsafe(self.serving.stop)
