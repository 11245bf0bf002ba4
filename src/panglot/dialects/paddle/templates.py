"""What `panglot new paddle` writes."""

from __future__ import annotations

from panglot.dialects.base import Template

TEMPLATES = {
    "": Template(
        files={
            "infer.py": "the script: load, preprocess, run, postprocess",
            "preprocess_ops.py": "from an image to an array",
            "net.py": "the net, and how it learns",
            "export_model.py": "makes inference/, which is served",
            "predict.py": "the same prediction by the training engine",
            "images/demo.png": "an image to send",
            "requirements.txt": "what to install for it",
        },
        call="curl -H 'Content-Type: image/png' --data-binary @{folder}/images/demo.png http://127.0.0.1:8080/predict",
        prepare="panglot export {folder}",
        title="A Paddle project of the TIPC chain",
        sends="images/demo.png",
        check='answer["class_id"] == 2',
        answer='{"class_id":2,"prob":...}',
    )
}
