"""What `panglot new plain` writes; its kinds have commands of their own, such as `panglot new chat`."""

from __future__ import annotations

from panglot.dialects.base import Template

KINDS_ARE_COMMANDS = True
"""Whether a kind can be named without the dialect."""
POST = "curl -H 'Content-Type: application/json' -d @{folder}/request.json http://127.0.0.1:8080/predict"
REQUEST = "a request to send"
INSTALLS = "what to install for it"

TEMPLATES = {
    "text": Template(
        files={
            "model.py": "the script: load, predict, example",
            "weights.json": "what it has learned",
            "request.json": REQUEST,
            "panglot.toml": "settings, all at their defaults",
            "requirements.txt": INSTALLS,
        },
        call=POST,
        title="Text in, an answer in JSON out",
        sends="request.json",
        check='answer == {"label": "friendly", "score": 0.9478}',
        answer='{"label":"friendly","score":0.9478}',
    ),
    "image": Template(
        files={
            "model.py": "the script: predict gets the decoded image",
            "sky.png": "an image to send",
            "requirements.txt": INSTALLS,
        },
        call="curl -F image=@{folder}/sky.png http://127.0.0.1:8080/predict",
        title="An image in, an answer in JSON out",
        sends="sky.png",
        check='answer["colour"] == "blue"',
        answer='{"colour":"blue",...}',
    ),
    "chat": Template(
        files={
            "model.py": "the script: chat answers the messages so far",
            "answers.json": "what it has learned",
            "request.json": REQUEST,
        },
        call=POST.replace("/predict", "/v1/chat/completions"),
        title="A chat with a page of its own, and OpenAI's API",
        sends="request.json",
        check='answer["choices"][0]["message"]["content"].startswith("Hello!")',
        answer='{"id":...,"content":"Hello! What can I do for you? "...}',
    ),
    "stream": Template(
        files={"model.py": "the script: predict yields the parts of its answer", "request.json": REQUEST},
        call=POST.replace("curl ", "curl -N -H 'Accept: application/x-ndjson' "),
        title="An answer that is sent part by part",
        sends="request.json",
        check='[part["word"] for part in answer] == ["one", "two", "three"]',
        answer='{"word":"one","number":1,"of":3}',
    ),
    "batch": Template(
        files={
            "model.py": "the script: predict_batch gets many requests in one call",
            "words.json": "what it has learned",
            "request.json": REQUEST,
            "panglot.toml": "how large a batch is, and how long it waits",
        },
        call=POST,
        title="Many requests in one call of the model",
        sends="request.json",
        check='answer == {"friendly_words": 2, "batch": 1}',
        answer='{"friendly_words":2,"batch":1}',
    ),
    "sklearn": Template(
        files={
            "model.py": "the script: predict_batch asks the trained model",
            "train.py": "makes model.joblib",
            "request.json": REQUEST,
            "requirements.txt": INSTALLS,
        },
        call=POST,
        prepare="python {folder}/train.py",
        title="A model of scikit-learn, trained on a table",
        sends="request.json",
        check='answer["species"] == "setosa"',
        answer='{"species":"setosa",...}',
    ),
    "transformers": Template(
        files={
            "model.py": "the script: predict_batch asks the pipeline",
            "make_model.py": "makes model/, a very small one",
            "request.json": REQUEST,
            "requirements.txt": INSTALLS,
        },
        call=POST,
        prepare="python {folder}/make_model.py",
        title="A pipeline of transformers",
        sends="request.json",
        check='answer["label"] == "friendly"',
        answer='{"label":"friendly",...}',
    ),
}
