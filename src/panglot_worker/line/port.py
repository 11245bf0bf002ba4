"""The worker's end of its socket: whole frames in, whole frames out."""

from __future__ import annotations

import socket
import threading
from collections import deque
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Optional, Protocol, Sequence, Set

from panglot_worker.errors import BAD_RESULT, EncodeError
from panglot_worker.line import wire
from panglot_worker.line.many_buffers import ManyBuffers
from panglot_worker.line.sharing import SharedMemory

READ_SIZE = 262144
SHARE_FROM = 16384
"""The least bytes of an answer that is put in shared memory."""
NOT_SHARED = wire.ERROR | wire.FETCH
"""Flags of replies whose bodies the front reads itself."""


class Frame(NamedTuple):
    """A frame as it arrived; `payload` is a view into the bytes that were read."""

    kind: int
    flags: int
    items: int
    payload: memoryview


class FrontGone(Exception):
    """The front closed the socket: there is nobody left to work for."""


class PortSocket(Protocol):
    """What a port needs of its socket."""

    def fileno(self) -> int:
        """A descriptor that can be waited on until there is something to read."""

    def recv(self, __size: int, __flags: int = 0) -> bytes:
        """The next bytes; none at the end."""

    def recv_into(self, __buffer: memoryview) -> int:
        """The next bytes, and how many they are."""

    def sendall(self, __data: wire.Buffer) -> None:
        """Send all bytes of a buffer."""

    def sendmsg(self, __buffers: Sequence[wire.Buffer]) -> int:
        """Send some of it, and tell how much."""


class Port:
    """The worker's line to the front. One thread reads at a time, see `intake`; any thread may send, or `look`.

    Reading puts the ids of cancelled items into `cancelled`, and frames for the main thread into `pending`.
    """

    def __init__(self, sock: PortSocket, generation: int = 0) -> None:
        self.sock = sock
        self.generation = generation
        self.cancelled: Set[int] = set()
        self.pending: Deque[Frame] = deque()
        self.max_body = self.max_handed = wire.MAX_FRAME - wire.MAX_HEAD
        """The most bytes of an answer, and of a result for the next pool."""
        self.shared = SharedMemory()
        self.row_key = b""
        """The key of results between pools, where those travel between machines."""
        self.on_answer: Optional[Callable[[memoryview], None]] = None
        """Takes the answers to calls that the script makes of other models, on the thread that reads."""
        self.on_pace: Optional[Callable[[int, bool], None]] = None
        """Takes an item whose client reads too slowly (True), or has read on (False), on the thread that reads."""
        self.has_reader = False
        """Whether frames are read at all times: by a thread of this port, or by the loop that serves the dialect."""
        self._reader: Optional[threading.Thread] = None
        self._arrived = threading.Condition()
        self._read_error: Optional[BaseException] = None
        self._rest = b""
        # A signal handler of the script may send while its own thread is amid a send: see `send`.
        self._send_lock = threading.RLock()
        self._is_sending = False
        self._sent_within: Deque[Sequence[wire.Buffer]] = deque()
        self._read_lock = threading.Lock()

    def fileno(self) -> int:
        return self.sock.fileno()

    def next(self) -> Frame:
        """The next frame for the main thread. Blocks. Raises FrontGone at the end of the stream."""
        while True:
            if self._reader is not None:
                return self._next_read()
            # One lock for the look and the wait: a thread that reads in between would leave us waiting for its frame.
            with self._read_lock:
                if self.pending:
                    return self.pending.popleft()
                self._receive(0)
            # Here as well as in replies: a script may release a body long after its answer, when no reply is due. The
            # front then sends an empty CANCEL, which wakes this loop.
            self.tell_free()

    def _next_read(self) -> Frame:
        """The next frame that the reading thread has read. Blocks. Raises what that thread met."""
        with self._arrived:
            while not self.pending:
                if self._read_error is not None:
                    raise self._read_error
                self._arrived.wait()
            return self.pending.popleft()

    def keep_reading(self) -> None:
        """Read at all times from now on, also while the main thread runs a script that waits for an answer."""
        # Under the lock: several threads of a script may make their first call at once, and one must start the reader.
        with self._arrived:
            if not self.has_reader:
                self.has_reader = True
                self._reader = threading.Thread(target=self._read_on, name="panglot-reader", daemon=True)
                self._reader.start()

    def _read_on(self) -> None:
        try:
            while True:
                # The main thread may still be in `next`, with the lock: it reads until its frame has come.
                with self._read_lock:
                    self._receive(0)
                # After `pending` is filled: a main thread that looks too early waits, and hears this.
                with self._arrived:
                    self._arrived.notify_all()
                self.tell_free()
        except (FrontGone, OSError, wire.WireError) as error:
            with self._arrived:
                self._read_error = error
                self._arrived.notify_all()

    def poll(self) -> None:
        """Take in all that has arrived, without waiting. Raises the error that a reading thread has ended with."""
        if self._reader is not None:
            if self._read_error is not None:
                raise self._read_error
            return
        with self._read_lock:
            self._read_arrived()

    def look(self) -> None:
        """Take in all that has arrived, unless another thread is reading: for threads of a script."""
        # Without waiting for the lock: a reading thread holds it while it waits for the front.
        if self._read_lock.acquire(blocking=False):
            try:
                self._read_arrived()
            finally:
                self._read_lock.release()

    def _receive(self, flags: int) -> None:
        data = self.sock.recv(READ_SIZE, flags)
        if not data:
            raise FrontGone
        self._split(self._rest + data if self._rest else data)

    def _read_arrived(self) -> None:
        try:
            # Until nothing is left, not once: a cancellation may lie behind more than one read.
            while True:
                self._receive(socket.MSG_DONTWAIT)
        except BlockingIOError:
            return

    def _split(self, data: bytes) -> None:
        start, end, size = 0, len(data), wire.HEADER.size
        view = memoryview(data)
        while end - start >= size:
            length, kind, flags, count, _generation = wire.HEADER.unpack_from(data, start)
            stop = start + size + length
            if stop > end:
                # Joining `_rest` with each read would copy a large frame again and again.
                if length > READ_SIZE:
                    self._take(Frame(kind, flags, count, self._large(view[start + size :], length)))
                    # `_large` reads exactly to the end of its frame, so that nothing is left over.
                    start = end
                break
            self._take(Frame(kind, flags, count, view[start + size : stop]))
            start = stop
        self._rest = data[start:]

    def _large(self, begun: memoryview, length: int) -> memoryview:
        """The payload of a frame larger than the read size, received into its own buffer."""
        whole = memoryview(bytearray(length))
        done = len(begun)
        whole[:done] = begun
        # Blocks, also for `poll`: the front is amid sending this frame.
        while done < length:
            got = self.sock.recv_into(whole[done:])
            if not got:
                raise FrontGone
            done += got
        return whole

    def _take(self, frame: Frame) -> None:
        if frame.kind == wire.CANCEL:
            self.cancelled.update(wire.item_ids(frame.payload))
        elif frame.kind == wire.ANSWER:
            if self.on_answer is not None:
                self.on_answer(frame.payload)
        elif frame.kind in (wire.HOLD, wire.GO_ON):
            if self.on_pace is not None:
                for item_id in wire.item_ids(frame.payload):
                    self.on_pace(item_id, frame.kind == wire.HOLD)
        else:
            self.pending.append(frame)

    def items(self, payload: memoryview, count: int) -> List[wire.Item]:
        """The items of a RUN frame. Their bodies are views into the frame or into shared memory."""
        return wire.run_items(payload, count, self.shared.look, self.shared.lent)

    def tell_free(self) -> None:
        """Send the front the ids of items whose bodies in shared memory are no longer used."""
        if self.shared.unseen:
            self.send([wire.ids_frame(wire.FREE, self.shared.settled(), self.generation)])

    def send(self, buffers: Sequence[wire.Buffer]) -> None:
        """Send the buffers of one frame, never mixed with other frames. Blocks while the front is slow.

        A frame that a signal handler sends amid a frame of its own thread follows behind that.
        """
        # Threads of the script send too: progress, output, warnings.
        with self._send_lock:
            if self._is_sending:
                self._sent_within.append(buffers)
                return
            while True:
                self._is_sending = True
                try:
                    self._write(buffers)
                finally:
                    self._is_sending = False
                # A handler that runs before this line leaves its frame to us, and one that runs after it sends.
                try:
                    buffers = self._sent_within.popleft()
                except IndexError:
                    return

    def _write(self, buffers: Sequence[wire.Buffer]) -> None:
        if len(buffers) == 1:
            self.sock.sendall(buffers[0])
            return
        # sendmsg may stop anywhere, also inside a buffer, and takes a limited number of buffers (IOV_MAX).
        rest: List[memoryview] = [memoryview(buffer) for buffer in buffers if len(buffer)]
        while rest:
            sent = self.sock.sendmsg(rest[:64])
            while rest and sent >= len(rest[0]):
                sent -= len(rest.pop(0))
            if sent:
                rest[0] = rest[0][sent:]

    def reply(self, *replies: wire.Reply) -> None:
        """Send answers. An answer that is too large becomes a problem; a part that is too large raises EncodeError."""
        if self.shared.lent:
            replies = tuple([self._placed(reply) for reply in replies])
        buffers = wire.reply_frame(replies, self.generation)
        # Replies that were joined into one buffer are small.
        if len(buffers) > 1 and any(self._is_too_large(reply) for reply in replies):
            buffers = wire.reply_frame([self._bounded(reply) for reply in replies], self.generation)
        # In the same write as the replies: a frame of its own would cost another system call.
        if self.shared.unseen:
            buffers[0] = wire.ids_frame(wire.FREE, self.shared.settled(), self.generation) + buffers[0]
        self.send(buffers)

    def _placed(self, reply: wire.Reply) -> wire.Reply:
        """The reply, with a large body moved to the buffer in shared memory that was lent for it."""
        # The buffer stays lent until the last part: it holds one body, and a part before must not use it up.
        if reply.flags & wire.MORE:
            return reply
        location, body = self.shared.lent.pop(reply.id, 0), reply.body
        if not location or len(body) < SHARE_FROM or reply.flags & NOT_SHARED or self._is_too_large(reply):
            return reply
        buffers = body.buffers if isinstance(body, ManyBuffers) else (body,)
        if isinstance(body, wire.Placed) or not self.shared.put(location, buffers):
            return reply
        return reply._replace(flags=reply.flags | wire.SHARED, body=wire.placed(len(body)))

    def _is_too_large(self, reply: wire.Reply) -> bool:
        return len(reply.body) > (self.max_handed if reply.flags & wire.PASS else self.max_body)

    def _bounded(self, reply: wire.Reply) -> wire.Reply:
        if not self._is_too_large(reply):
            return reply
        most = self.max_handed if reply.flags & wire.PASS else self.max_body
        error = EncodeError("it has %d bytes and may have %d" % (len(reply.body), most))
        # A problem cannot replace one part of an answer: the caller ends the stream with the error.
        if reply.flags & wire.MORE:
            raise error
        return wire.problem(reply.id, 500, "bad_result", BAD_RESULT, "EncodeError: %s" % error, reply.times)

    def tell(self, kind: int, value: Optional[Dict[str, Any]] = None) -> None:
        """Send a control frame. An event that is too large for the front becomes a warning."""
        frame = wire.json_frame(kind, self.generation, value or {})
        if kind == wire.EVENT and len(frame) > wire.MAX_EVENT:
            message = "a worker had more to tell (%s, %d bytes) than is read" % ((value or {}).get("type"), len(frame))
            frame = wire.json_frame(kind, self.generation, {"type": "warning", "message": message})
        self.send([frame])
