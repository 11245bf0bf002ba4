"""What `panglot new modelarts` writes."""

from __future__ import annotations

from panglot.dialects.base import Template


def _template(makes: str, call: str = "-F images=@{folder}/sky.png", **more: str) -> Template:
    files = {
        "customize_service.py": "the script: the steps of a request",
        "config.json": "the engine, the API and what to install",
        "train.py": f"makes {makes}",
        **more,
        "README.md": "how to serve and call it",
    }
    prepare = "python {folder}/train.py"
    return Template(files, f"curl {call} http://127.0.0.1:8080/", prepare)


TEMPLATES = {
    "pytorch": _template("colours.pth and sky.png"),
    "tensorflow": _template("saved_model.pb, variables/ and sky.png"),
    "mindspore": _template("colours.ckpt and sky.png"),
    "sklearn": _template(
        "colours.m",
        "-H 'Content-Type: application/json' -d @{folder}/request.json",
        **{"request.json": "a request to send"},
    ),
}
