"""What `panglot new modelarts` writes."""

from __future__ import annotations

from panglot.dialects.base import Template


def _template(framework: str, makes: str, installs: str) -> Template:
    """A package that names the colour of an image."""
    return Template(
        files={
            "customize_service.py": "the script: the steps of a request",
            "config.json": "the engine, the API and what to install",
            "train.py": f"makes {makes}",
        },
        call="curl -F images=@{folder}/sky.png http://127.0.0.1:8080/",
        prepare="python {folder}/train.py",
        title=f"A service of Huawei ModelArts with {framework}",
        sends="sky.png",
        check='answer == {"colours": ["blue"]}',
        answer='{"colours": ["blue"]}',
        installs=installs,
    )


TEMPLATES = {
    "pytorch": _template("PyTorch", "colours.pth and sky.png", "torch numpy pillow"),
    "tensorflow": _template("TensorFlow", "saved_model.pb, variables/ and sky.png", "tensorflow numpy pillow"),
    "mindspore": _template("MindSpore", "colours.ckpt and sky.png", "mindspore numpy pillow"),
    "sklearn": Template(
        files={
            "customize_service.py": "the script: the steps of a request",
            "config.json": "the engine, the API and what to install",
            "train.py": "makes colours.m",
            "request.json": "a request to send",
        },
        call="curl -H 'Content-Type: application/json' -d @{folder}/request.json http://127.0.0.1:8080/",
        prepare="python {folder}/train.py",
        title="A service of Huawei ModelArts with scikit-learn",
        sends="request.json",
        check='answer["data"]["resp_data"] == [{"colour": "blue"}]',
        answer='{"meta": {"uuid": "1"}, "data": {"resp_data": [{"colour": "blue"}]}}',
        installs="scikit-learn",
    ),
}
