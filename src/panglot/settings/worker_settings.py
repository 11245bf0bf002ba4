"""What of the settings a worker gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from panglot.machine import video_interpreter

if TYPE_CHECKING:
    from panglot.settings.all_settings import Settings


def of(settings: Settings) -> dict[str, Any]:
    """The settings that a worker gets."""
    limits = {
        "json_bytes": settings.max_json,
        "json_depth": settings.max_json_depth,
        "parts": settings.max_parts,
        "files": settings.max_files,
        "text_field": settings.max_text_field,
        "output_bytes": settings.max_output,
        "output_depth": settings.max_output_depth,
    }
    own: tuple[str, ...] = ("sick_after", "nan", "slots", "rerun", "dev", "warm_up", "max_pixels", "load_timeout")
    own += ("await_threads", "strict_results", "device", "worker_net", "url_allow", "log_level", "max_batch")
    own += ("on_leave", "slow_reader")
    video = {
        "seconds": settings.video_seconds, "frames": settings.video_frames, "pixels": settings.video_pixels,
        "bytes": settings.video_bytes, "open": settings.video_open, "stall": settings.video_stall,
        "stream_seconds": settings.stream_max_s, "retries": settings.stream_retries, "results": settings.stream_results,
        "streams": settings.max_streams, "python": video_interpreter.python(),
    }  # fmt: skip
    more = {"limits": limits, "video": video, "handed_bytes": settings.request_memory}
    more["run_timeout"] = settings.effective_run_timeout
    return {**more, **{name: getattr(settings, name) for name in own}}
