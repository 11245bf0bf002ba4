"""Videos for plain scripts: `predict_frame(frame)` is called with every frame, and its results are the answer."""

from __future__ import annotations

import urllib.parse
from typing import Any, Callable, Dict, Iterator, NamedTuple, Optional

from panglot_worker.dialects.base import Package, Request, Stages
from panglot_worker.errors import ScriptError
from panglot_worker.video import interpreter
from panglot_worker.video.decoder_process import DecoderProcess, Ended, Sampling
from panglot_worker.video.limits import limits_of, rules_for_clients
from panglot_worker.video.uploads import is_in_body, uploaded

ROUTE = b"/analyze_video"
STATUSES = {"too_long": 413, "too_large": 413}


class VideoError(Exception):
    """A video cannot be analysed, or not to its end."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Video(NamedTuple):
    """An uploaded video, instead of a decoded body."""

    body: bytes
    """The video itself, or the path of its file."""
    is_in_body: bool
    sampling: Sampling


class FrameResult(Dict[str, Any]):
    """The result for one frame. The stages of the script leave it alone."""


def with_videos(stages: Stages, predict_frame: Callable[[Any], Any], settings: Dict[str, Any]) -> Stages:
    """The stages of a script, changed so that they take videos too."""

    def decode(request: Request) -> Any:
        return video_of(request, settings) if request.head.route == ROUTE else stages.decode(request)

    def infer(value: Any) -> Any:
        return results(value, predict_frame, settings) if isinstance(value, Video) else stages.infer(value)

    return stages._replace(
        decode=decode,
        infer=infer,
        preprocess=unless(Video, stages.preprocess),
        postprocess=unless(FrameResult, stages.postprocess),
    )


def check_libraries(package: Package) -> None:
    """Raises ScriptError where nothing can decode videos, or nothing can take their frames."""
    lack = interpreter.lack(limits_of(package.settings))
    if lack is not None:
        problem = "predict_frame takes frames of videos, which needs %s" % lack.what
        raise ScriptError(problem, package.script, fix="%s, or give the function another name" % lack.fix)


def unless(kind: type, stage: Optional[Callable[[Any], Any]]) -> Optional[Callable[[Any], Any]]:
    """A stage that returns values of one kind unchanged."""
    if stage is None:
        return None
    return lambda value: value if isinstance(value, kind) else stage(value)


def video_of(request: Request, settings: Dict[str, Any]) -> Video:
    """The video a request is about. Raises VideoError for a senseless query."""
    query = dict(urllib.parse.parse_qsl(request.head.query.decode("latin-1")))
    try:
        sampling = Sampling(int(query.pop("every", 1)), float(query.pop("fps", 0)))
    except ValueError:
        raise VideoError(400, "fps must be a number, and every a whole number") from None
    if query or not (sampling.every >= 1 and 0 <= sampling.fps <= 1000):
        raise VideoError(400, "there are fps, above 0 and at most 1000, and every, 1 or more")
    return Video(bytes(request.body), is_in_body(request.head, settings), sampling)


def results(video: Video, predict_frame: Callable[[Any], Any], settings: Dict[str, Any]) -> Iterator[FrameResult]:
    """One result for each frame. Raises VideoError, and what the script raises."""
    source = uploaded(video.body, video.is_in_body)
    decoder = DecoderProcess(source, video.sampling, limits_of(settings), rules_for_clients(settings))
    try:
        while True:
            frame = decoder.next()
            if frame is not None:
                yield FrameResult(frame=frame.number, seconds=frame.seconds, result=predict_frame(frame.array))
            del frame
    except Ended as ended:
        if ended.kind:
            status = STATUSES.get(ended.kind, 422)
            raise VideoError(status, "the video cannot be analysed: %s" % ended.message) from None
    finally:
        decoder.close()
        source.close()
