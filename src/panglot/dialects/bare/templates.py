"""What `panglot new bare` writes."""

from __future__ import annotations

from panglot.dialects.base import Template

TEMPLATES = {
    "": Template(
        files={
            "digits.onnx": "the model: pixels in, the likelihood of each digit out",
            "make_model.py": "what made it, with onnx and scikit-learn",
            "seven.png": "an image to send",
            "panglot.toml": "how images become numbers, all at its defaults",
        },
        call="curl -H 'Content-Type: image/png' --data-binary @{folder}/seven.png http://127.0.0.1:8080/predict",
        title="A model file without a script",
        sends="seven.png",
        check='max(range(10), key=answer["probabilities"][0].__getitem__) == 7',
        answer='{"probabilities":...}',
        installs="onnxruntime numpy pillow",
    )
}
