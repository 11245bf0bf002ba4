"""What `panglot new bare` writes."""

from __future__ import annotations

from panglot.dialects.base import Template

TEMPLATES = {
    "": Template(
        files={
            "digits.onnx": "the model: pixels in, the likelihood of each digit out",
            "make_model.py": "what made it, with onnx and scikit-learn",
            "seven.png": "a picture to send",
            "panglot.toml": "how pictures become numbers, all at its defaults",
            "README.md": "how to serve and call it",
        },
        call="curl -H 'Content-Type: image/png' --data-binary @{folder}/seven.png http://127.0.0.1:8080/predict",
    )
}
