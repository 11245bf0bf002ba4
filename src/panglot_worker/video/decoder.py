"""The program of a decoder: one process per stream, which puts the frames of one video into shared memory.

The first line of its standard input is the order, in JSON. When that input ends, so does the process, whatever it is
doing. Each line of its standard output is a JSON message about a frame, or about its end. It imports nothing but the
standard library and PyAV.
"""

from __future__ import annotations

import json
import mmap
import os
import resource
import sys
import threading
import time
from typing import Any, Dict, Iterator, NoReturn, Optional, Tuple

from panglot_worker.net.hosts import AddressRefused
from panglot_worker.video import memory
from panglot_worker.video.guarded import TooLarge, Unreachable, opened

FORMATS = (
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,mpegvideo,m4v,flv,live_flv,h264,hevc,mjpeg,mpjpeg,ogg,asf,"
    "ivf,av1,obu"
)
"""Containers that hold their frames themselves. None of them names another file, address or port."""

MEMORY = 4 << 30
"""Address space of a decoder, beyond the frames' own."""
TICK = 0.5
NO_CONNECTION = "there is no connection to it"
BAD_PACKETS = 500
"""Packets in a row that cannot be decoded before the video is given up."""


class DecodingFailure(Exception):
    """The reason why no more frames come. `kind` is a word for programs, `detail` is for the log alone."""

    def __init__(self, kind: str, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.detail = detail


def main() -> None:
    """Carry out the order in the first line of standard input, report on standard output, and end the process."""
    # Libraries in C print to descriptor 1. It becomes standard error, so that only messages go out by the copy.
    out = os.fdopen(os.dup(1), "wb", 0)
    os.dup2(2, 1)
    order = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=end_with_worker, daemon=True).start()
    limits = order["limits"]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    size = memory.slot_size(limits["pixels"])
    most = MEMORY + memory.length(size)
    # A hostile video can make codecs allocate without end: they must fail before the machine runs out of memory.
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    decoder = Decoder(order, mmap.mmap(order["memory"], memory.length(size)), out)
    try:
        ending: Dict[str, Any] = {"end": decoder.run()}
    except DecodingFailure as error:
        ending = {"error": error.kind, "message": error.message, "detail": error.detail}
    except MemoryError:
        ending = {"error": "too_large", "message": "decoding it takes too much memory"}
    except Exception as error:  # noqa: BLE001  codecs raise anything
        ending = {"error": "undecodable", "message": "%s: %s" % (type(error).__name__, error)}
    decoder.tell({**ending, "decoded": decoder.decoded, "live": decoder.live})
    # Not a return, which would wait for threads and destructors of codecs: they have nothing more to do.
    os._exit(0)


def end_with_worker() -> NoReturn:
    """End this process when its standard input ends: the worker has closed it, or is dead."""
    while os.read(0, 4096):
        pass
    os._exit(0)


class Decoder:
    """Opens one source, decodes it, and puts the wanted frames into shared memory."""

    def __init__(self, order: Dict[str, Any], frames: mmap.mmap, out: Any) -> None:
        self.order = order
        self.limits = order["limits"]
        self.frames = frames
        self.size = memory.slot_size(self.limits["pixels"])
        self.out = out
        self.decoded = 0
        self.live = False
        self._source: Any = None
        self._next_time: Optional[float] = None
        self._moment = 0.0
        self._last_sent = 0.0
        self._reformatter: Any = None
        """One for all frames: each new one would prepare the conversion again."""

    def tell(self, message: Dict[str, Any]) -> None:
        self._last_sent = time.monotonic()
        data = json.dumps(message).encode() + b"\n"
        while data:
            # An unbuffered file may write less than it was given.
            data = data[self.out.write(data) :]

    def run(self) -> str:
        """Decode until the video ends. Returns "limit" where a live source had its time. Raises DecodingFailure."""
        container, stream = self._open()
        from av.video.reformatter import VideoReformatter

        self._reformatter = VideoReformatter()
        rate = float(stream.average_rate or stream.guessed_rate or 0) or 25.0
        duration = container.duration / 1e6 if container.duration else 0.0
        # By the header, so that a long file is refused early; `_is_over` counts the frames that really come.
        if not self.live and duration > self.limits["seconds"]:
            raise DecodingFailure(
                "too_long", "the video lasts %.3g s, more than %g s" % (duration, self.limits["seconds"])
            )
        self._check_size(stream.width, stream.height)
        self.tell({"open": {"fps": round(rate, 3), "seconds": duration}, "live": self.live})
        began = time.monotonic()
        first: Optional[float] = None
        for frame in self._frames(container, stream):
            number = self.decoded
            self.decoded += 1
            moment = frame.time if frame.time is not None else number / rate
            first = moment if first is None else first
            if self._is_over(number, moment - first, time.monotonic() - began):
                return "limit"
            if self._is_wanted(number, moment) and (self.live or number >= self.order["first"]):
                self._hand_over(frame, number, moment - first)
            elif time.monotonic() - self._last_sent > TICK:
                self.tell({"tick": self.decoded})
        if not self.decoded:
            raise DecodingFailure("undecodable", "it holds no frame that can be decoded")
        if self._source is not None and self._source.broken:
            raise DecodingFailure("dropped", "the connection broke off")
        if self.order["kind"] == "rtsp":
            raise DecodingFailure("dropped", "the stream broke off")
        return ""

    def _is_over(self, number: int, seconds: float, running: float) -> bool:
        """Whether a live source had its time. Raises DecodingFailure for a file that is too long after all."""
        if self.live:
            return bool(0 < self.limits["stream_seconds"] < running)
        if number >= self.limits["frames"]:
            raise DecodingFailure("too_long", "the video has more than %d frames" % self.limits["frames"])
        if seconds > self.limits["seconds"]:
            raise DecodingFailure("too_long", "the video lasts more than %g s" % self.limits["seconds"])
        return False

    def _is_wanted(self, number: int, moment: float) -> bool:
        every, fps = self.order["every"], self.order["fps"]
        if number % every:
            return False
        if not fps:
            return True
        if self._next_time is None or moment < self._moment - 0.5:
            # This is the first frame, or the clock of the video began anew.
            self._next_time = moment
        self._moment = moment
        # A thousandth of a second: frame times are rounded.
        if moment + 0.001 < self._next_time:
            return False
        self._next_time = max(self._next_time + 1 / fps, moment + 0.5 / fps)
        return True

    # Opening

    def _open(self) -> Tuple[Any, Any]:
        import av

        av.logging.set_level(None)
        # Playlists and the like can name other files and addresses, which FFmpeg would open for the client.
        options = {"format_whitelist": FORMATS, "protocol_whitelist": "none", "max_pixels": str(self.limits["pixels"])}
        kind, where = self.order["kind"], self.order["where"]
        try:
            if kind == "file":
                container = av.open(os.fdopen(where, "rb", 1 << 18), options=options, buffer_size=1 << 17)
            elif kind == "http":
                container = self._open_http(av, where, options)
            elif kind == "rtsp":
                container = self._open_rtsp(av, where, options)
            else:
                self.live = True
                container = av.open(where, format="v4l2")
        except AddressRefused as error:
            # The same words as for an address where nobody answers: clients must not learn which addresses exist.
            raise DecodingFailure("refused", NO_CONNECTION, "%s; --url-allow would let it" % error) from None
        except TooLarge as error:
            raise DecodingFailure("too_large", str(error)) from None
        except Unreachable as error:
            raise DecodingFailure("unreachable", str(error)) from None
        except av.error.FFmpegError as error:
            raise self._failed(error) from None
        except OSError as error:
            raise DecodingFailure("unreachable", NO_CONNECTION, error.strerror or type(error).__name__) from None
        if not container.streams.video:
            raise DecodingFailure("undecodable", "it holds no video")
        stream = container.streams.best("video") or container.streams.video[0]
        # Threads by frame delay live pictures by as many frames as there are threads.
        stream.thread_type = "SLICE" if self.live else "AUTO"
        return container, stream

    def _open_http(self, av: Any, url: str, options: Dict[str, str]) -> Any:
        self._source, file = opened(url, self.order["url_allow"], self.limits["bytes"], self.limits["stall"])
        self.live = self._source.live
        return av.open(file, options=options, buffer_size=1 << 15)

    def _open_rtsp(self, av: Any, url: str, options: Dict[str, str]) -> Any:
        from panglot_worker.video.relay import Relay

        self.live = True
        relay = Relay(url, self.order["url_allow"], self.limits["stall"])
        options = {**options, "format_whitelist": "rtsp", "protocol_whitelist": "tcp", "rtsp_transport": "tcp"}
        options["analyzeduration"] = "1000000"
        return av.open(relay.url, format="rtsp", options=options)

    def _failed(self, error: Exception) -> DecodingFailure:
        if self._source is not None and self._source.broken:
            return DecodingFailure("dropped", "the connection broke off")
        if self.order["kind"] == "rtsp":
            return DecodingFailure("unreachable", "the server does not play it: %s" % getattr(error, "strerror", error))
        if self.order["kind"] == "camera":
            return DecodingFailure("unreachable", "the camera cannot be opened: %s" % getattr(error, "strerror", error))
        return DecodingFailure("undecodable", "it is not a video in a known format")

    # Decoding

    def _frames(self, container: Any, stream: Any) -> Iterator[Any]:
        """All frames, with those that the codec holds back until the end. Some damaged packets are skipped."""
        import av

        bad = 0
        packets = container.demux(stream)
        while True:
            try:
                packet = next(packets)
                frames = packet.decode()
            except StopIteration:
                return
            except av.error.EOFError:
                return
            except (av.error.FFmpegError, ValueError) as error:
                # An OSError comes from the source, not from a packet: reading on would only repeat it.
                bad += 1
                if bad > BAD_PACKETS or isinstance(error, OSError):
                    if self.live:
                        raise DecodingFailure("dropped", "the stream broke off") from None
                    raise DecodingFailure("undecodable", "it is damaged: %s" % error) from None
                continue
            if frames:
                bad = 0
            yield from frames

    def _hand_over(self, frame: Any, number: int, seconds: float) -> None:
        width, height = frame.width, frame.height
        # Again for each frame: a stream may change its size in the middle.
        self._check_size(width, height)
        plane = self._reformatter.reformat(frame, format="bgr24", interpolation="BILINEAR").planes[0]
        slot = self._free_slot()
        start, row = memory.start_of(slot, self.size), width * 3
        pixels = memoryview(plane)
        # FFmpeg pads rows to a multiple of its vector size; rows in the slot have no padding.
        if plane.line_size == row:
            self.frames[start : start + row * height] = pixels[: row * height]
        else:
            for line in range(height):
                at = line * plane.line_size
                self.frames[start + line * row : start + (line + 1) * row] = pixels[at : at + row]
        # Marked after the pixels and before the message: see `memory`.
        self.frames[slot] = memory.TAKEN
        self.tell({
            "frame": number, "slot": slot, "width": width, "height": height, "seconds": round(seconds, 6),
            "decoded": self.decoded,
        })  # fmt: skip

    def _check_size(self, width: int, height: int) -> None:
        if width * height > self.limits["pixels"]:
            raise DecodingFailure("too_large", "its frames of %d x %d are too large" % (width, height))

    def _free_slot(self) -> int:
        """Wait for a free slot. The first one is taken: memory just used is still in the processor's cache."""
        while True:
            for slot in range(memory.SLOTS):
                if self.frames[slot] == memory.FREE:
                    return slot
            time.sleep(0.001)
