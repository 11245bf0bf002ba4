"""Transformers for scripts under test, and small models for it: `python transformers.py FOLDER` makes them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

VERSIONS = (
    "transformers==4.57.1", "tokenizers==0.22.1", "huggingface-hub==0.36.0", "safetensors==0.6.2", "regex==2025.9.18",
    "tqdm==4.67.1",
)  # fmt: skip
WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "once", "upon", "a", "time")


def variables(folder: Path) -> dict[str, str]:
    """The variables by which our interpreter has transformers; `folder` gets what makes it work with our torch."""
    from support import environments, torchserve

    env = environments.over_ours("transformers-4.57.1", *VERSIONS)
    path = os.pathsep.join((str(torchserve.stubs(folder)), env["PYTHONPATH"]))
    return {"PYTHONPATH": path, "USE_TF": "0", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


def made(folder: Path, env: dict[str, str]) -> Path:
    """The models: `sentiment`, a classifier with its own `expected.json`, and `story`, which goes on with a text."""
    command = [sys.executable, "-W", "ignore", __file__, str(folder)]
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def _make(folder: Path) -> None:
    # The folder of this file has modules called like libraries, which this process wants.
    sys.path = [path for path in sys.path if Path(path or ".").resolve() != Path(__file__).resolve().parent]
    import torch
    from transformers import (
        BertConfig,
        BertForSequenceClassification,
        BertTokenizerFast,
        GPT2Config,
        GPT2LMHeadModel,
        pipeline,
    )

    torch.manual_seed(7)
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(WORDS))
    tokenizer = BertTokenizerFast(str(vocabulary))
    size = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    sentiment = BertForSequenceClassification(BertConfig(vocab_size=len(WORDS), num_labels=2, **size))
    story = GPT2LMHeadModel(GPT2Config(vocab_size=len(WORDS), n_embd=8, n_layer=1, n_head=1, eos_token_id=0)).eval()
    for name, model in (("sentiment", sentiment), ("story", story)):
        model.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    classify = pipeline("text-classification", model=str(folder / "sentiment"))
    tokens = tokenizer(["once upon", "a time"], return_tensors="pt", add_special_tokens=False)
    told = story.generate(**tokens, max_new_tokens=4, min_new_tokens=4, do_sample=False, pad_token_id=0)
    texts = [tokenizer.decode(row[2:]) for row in told]
    (folder / "expected.json").write_text(json.dumps({"good": classify("good"), "story": texts}))


if __name__ == "__main__":
    _make(Path(sys.argv[1]))
