"""What `panglot new megflow` writes."""

from __future__ import annotations

from panglot.dialects.base import Template

GRAPH = {"graph.toml": "the graph: what is connected to what"}
INSTALLS = {"requirements.txt": "what to install for it"}
TEST = {"test_package.py": "a test: it starts the server and sends one request"}

TEMPLATES = {
    "image": Template(
        files={**GRAPH, "colour.py": "the node it names", "sky.png": "an image to send", **INSTALLS},
        call="curl -H 'Content-Type: image/*' --data-binary @{folder}/sky.png http://127.0.0.1:8084/analyze/sky",
        title="A graph of MegFlow for images",
        sends="sky.png",
        check='answer["colour"] == "blue"',
        answer='{"colour": "blue",...}',
    ),
    "bytes": Template(
        files={**GRAPH, "count.py": "the node it names", "words.txt": "a text to send", **INSTALLS, **TEST},
        call="curl --data-binary @{folder}/words.txt http://127.0.0.1:8085/analyze/bytes",
        title="A graph of MegFlow for bytes",
        sends="words.txt",
        check='answer == {"words": 5}',
        answer='{"words": 5}',
    ),
    "video": Template(
        files={
            **GRAPH,
            "moving.py": "the nodes it names",
            "clip.mp4": "a video to try",
            "panglot.toml": "settings: which files a request may name",
            **INSTALLS,
            **TEST,
        },
        call="curl -X POST http://127.0.0.1:8086/start/clip.mp4",
        title="A graph of MegFlow for videos and cameras",
        sends="clip.mp4",
        check='answer == "start stream whose id is 0"',
        answer="start stream whose id is 0",
    ),
}
