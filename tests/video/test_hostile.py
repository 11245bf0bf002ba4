"""Videos that are none, or that lead elsewhere. In a network of its own, where every connection is counted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.videos import made, make

PROBE = Path(__file__).with_name("probe.py")

LISTS = {
    "hls": "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\nhttp://127.0.0.1:{port}/a.ts\n#EXT-X-ENDLIST\n",
    "hls_file": "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\n{clip}\n#EXT-X-ENDLIST\n",
    "hls_self": "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n{path}\n",
    "hls_endless": "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nhttp://127.0.0.1:{port}/a.ts\n",
    "m3u": "http://127.0.0.1:{port}/a.mp4\n",
    "dash": '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" '
    'mediaPresentationDuration="PT9S"><BaseURL>http://127.0.0.1:{port}/</BaseURL><Period><AdaptationSet '
    'mimeType="video/mp4"><Representation id="1" bandwidth="1"><SegmentTemplate media="" initialization="i.mp4"/>'
    "</Representation></AdaptationSet></Period></MPD>",
    "ffconcat": "ffconcat version 1.0\nfile 'http://127.0.0.1:{port}/a.mp4'\n",
    "ffconcat_file": "ffconcat version 1.0\nfile '{clip}'\n",
    "sdp": "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video {port} RTP/AVP 96\n"
    "a=rtpmap:96 H264/90000\n",
    "asx": '<asx version="3.0"><entry><ref href="http://127.0.0.1:{port}/a.asf"/></entry></asx>',
    "cue": 'FILE "http://127.0.0.1:{port}/a.wav" WAVE\n  TRACK 01 AUDIO\n    INDEX 01 00:00:00\n',
    "smil": '<smil><body><video src="http://127.0.0.1:{port}/a.mp4"/></body></smil>',
    "ref": "[Reference]\nRef1=http://127.0.0.1:{port}/a.asf\n",
    "rtsp_ref": "rtsptext\nrtsp://127.0.0.1:{port}/a\n",
}

WORDS = (
    "concat:{clip}", "concat:http://127.0.0.1:{port}/a|{clip}", "subfile,,start,0,end,9,,:{clip}",
    "data:video/mp4;base64,AA", "pipe:", "pipe:0", "crypto:{clip}", "cache:{clip}", "async:{clip}",
    "tcp://127.0.0.1:{port}", "udp://127.0.0.1:{port}", "rtp://127.0.0.1:{port}", "unix:/tmp/x", "tee:{clip}",
    "file:{clip}", "file://{clip}", "fd:0", "ftp://127.0.0.1:{port}/x", "hls+http://127.0.0.1:{port}/x",
    "http://127.0.0.1:{port}/x", "http://localhost:{port}/x", "http://[::1]:{port}/x", "http://2130706433:{port}/",
    "http://127.1:{port}/", "http://0x7f000001:{port}/", "http://a@127.0.0.1:{port}/", "rtsp://127.0.0.1:{port}/x",
    "rtsp://localhost:{port}/x", "rtsp://127.0.0.1/x", "rtsps://127.0.0.1:{port}/x", "rtmp://127.0.0.1:{port}/x", "HTTP://127.0.0.1:{port}/x",
    "//127.0.0.1/x", "lavfi:testsrc", "/dev/zero", "/dev/stdin", "/proc/self/fd/0", "{folder}", "{folder}/%d.jpg",
    "{folder}/*.mp4", "", " ", "srt://127.0.0.1:{port}", "gopher://127.0.0.1:{port}/", "x" * 5000,
)  # fmt: skip


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("clips") / "clip.mp4", 30)


def probe(given: dict[str, object]) -> dict[str, object]:
    """What becomes of each source, and what the counting listeners saw, in a network with nothing else in it."""
    command = [sys.executable, str(PROBE), json.dumps(given)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_lists_of_other_places_open_nothing(clip: Path, tmp_path: Path) -> None:
    files = {}
    for name, text in LISTS.items():
        path = files[name] = tmp_path / f"{name}.mp4"
        path.write_text(text.replace("{path}", str(path)).replace("{clip}", str(clip)))
    found = probe({"files": {name: str(path) for name, path in files.items()}, "served": ["hls", "dash", "sdp"]})
    outcomes: dict[str, str] = found["outcomes"]  # type: ignore[assignment]
    assert set(outcomes.values()) == {"undecodable"}, outcomes
    assert len(outcomes) == len(LISTS) + 3
    assert (found["connections"], found["datagrams"], found["opened"]) == (0, 0, []), found


def test_words_where_an_address_or_a_path_is_meant(clip: Path) -> None:
    found = probe(
        {"words": [word.replace("{clip}", str(clip)).replace("{folder}", str(clip.parent)) for word in WORDS]}
    )
    outcomes: dict[str, str] = found["outcomes"]  # type: ignore[assignment]
    assert set(outcomes.values()) == {"refused"}, outcomes
    assert (found["connections"], found["datagrams"], found["opened"]) == (0, 0, []), found


def tracks(count: int) -> bytes:
    """An index that names so many tracks, none of which holds anything."""
    return b"\0\0\0\x10ftypisom\0\0\0\0" + (8 + 8 * count).to_bytes(4, "big") + b"moov" + b"\0\0\0\x08trak" * count


def damaged(clip: Path) -> dict[str, bytes]:
    whole = clip.read_bytes()
    import random

    chance = random.Random(7)
    found = {
        "header_only": whole[:64],
        "no_index": whole[: whole.rindex(b"moov") - 4],
        "half": whole[: len(whole) // 2],
        "index_twice": whole + whole[whole.rindex(b"moov") - 4 :],
        "atom_zero": b"\0\0\0\0ftyp" + whole[8:],
        "atom_huge": b"\0\0\0\1ftyp" + b"\xff" * 8 + whole[8:],
        "nested": b"".join((8 * (4000 - n)).to_bytes(4, "big") + b"moov" for n in range(4000)),
        "thousand_tracks": tracks(1_000),
        "million_tracks": tracks(1_000_000),
        "zeroed": whole[: len(whole) // 3] + bytes(len(whole) // 3) + whole[2 * len(whole) // 3 :],
        "empty": b"",
    }
    for number in range(6):
        bytes_ = bytearray(whole)
        for _ in range(max(1, len(whole) * 8 // (1000 if number % 2 else 100))):
            place = chance.randrange(len(bytes_))
            bytes_[place] ^= 1 << chance.randrange(8)
        found[f"flipped_{number}"] = bytes(bytes_)
    return found


def test_damaged_files_end_by_themselves(clip: Path, tmp_path: Path) -> None:
    files = {}
    for name, content in damaged(clip).items():
        files[name] = tmp_path / name
        files[name].write_bytes(content)
    (tmp_path / "half.ts").write_bytes(made(60)[: 188 * 30])
    found = probe({"files": {name: str(path) for name, path in [*files.items(), ("ts", tmp_path / "half.ts")]}})
    outcomes: dict[str, str] = found["outcomes"]  # type: ignore[assignment]
    assert set(outcomes.values()) <= {"", "undecodable", "crashed", "too_large", "too_long"}, outcomes
    assert outcomes["empty"] == outcomes["no_index"] == "undecodable"
    assert outcomes["index_twice"] == outcomes["ts"] == ""


def test_no_video_in_it(tmp_path: Path) -> None:
    import av
    import numpy as np

    with av.open(str(tmp_path / "sound.mp4"), "w") as container:
        stream = container.add_stream("aac", rate=44100)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        frame.sample_rate = 44100
        container.mux(stream.encode(frame))
        container.mux(stream.encode())
    found = probe({"files": {"sound": str(tmp_path / "sound.mp4")}})
    assert found["outcomes"] == {"sound": "undecodable"}
