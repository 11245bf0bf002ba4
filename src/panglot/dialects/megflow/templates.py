"""What `panglot new megflow` writes."""

from __future__ import annotations

from panglot.dialects.base import Template

TEMPLATES = {
    "image": Template(
        files={
            "graph.toml": "the graph: what is connected to what",
            "colour.py": "the node it names",
            "sky.png": "a picture to send",
            "requirements.txt": "what to install for it",
            "README.md": "how to serve and call it",
        },
        call="curl -H 'Content-Type: image/*' --data-binary @{folder}/sky.png http://127.0.0.1:8084/analyze/sky",
    ),
    "bytes": Template(
        files={
            "graph.toml": "the graph: what is connected to what",
            "count.py": "the node it names",
            "requirements.txt": "what to install for it",
            "README.md": "how to serve and call it",
        },
        call="curl --data-binary 'how many words are these' http://127.0.0.1:8085/analyze/bytes",
    ),
    "video": Template(
        files={
            "graph.toml": "the graph: what is connected to what",
            "moving.py": "the nodes it names",
            "clip.mp4": "a video to start",
            "panglot.toml": "settings: whose files a request may name",
            "requirements.txt": "what to install for it",
            "README.md": "how to serve and call it",
        },
        call="curl -X POST http://127.0.0.1:8086/start/clip.mp4",
    ),
}
