"""What the reader of a tutorial has downloaded: small weights of the same shape, where the download would lie."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support import environments, mlflow
from support.server import ROOT

TRANSFORMERS = (
    "transformers==5.23.0", "tokenizers", "huggingface_hub", "safetensors", "regex", "hf-xet", "tqdm", "fsspec",
    "filelock", "packaging", "pyyaml", "requests", "typer", "shellingham",
)  # fmt: skip
OPERATORS = str(ROOT / "tests" / "tiinfer" / "environment" / "torchvision_operators")
"""What torchvision needs beside the torch of our tests, which cannot load its compiled part."""
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}

CLASSIFIER = """
import torch
from torchvision.models import mobilenet_v3_small
torch.manual_seed(0)
torch.save(mobilenet_v3_small().state_dict(), "mobilenet_v3_small-047dcff4.pth")
"""
SENTIMENT = """
import torch
from pathlib import Path
from transformers import BertTokenizer, DistilBertConfig, DistilBertForSequenceClassification

torch.manual_seed(0)
Path("sentiment").mkdir()
Path("vocab.txt").write_text("\\n".join("[PAD] [UNK] [CLS] [SEP] [MASK] i love hate this film".split()))
tokenizer = BertTokenizer("vocab.txt")
config = DistilBertConfig(vocab_size=10, dim=16, hidden_dim=32, n_layers=1, n_heads=2, dropout=0, seq_classif_dropout=0,
                          id2label={0: "NEGATIVE", 1: "POSITIVE"}, label2id={"NEGATIVE": 0, "POSITIVE": 1})
net = DistilBertForSequenceClassification(config)
tokens = tokenizer(["I hate this film", "I love this film"], return_tensors="pt", return_token_type_ids=False)
steps = torch.optim.Adam(net.parameters(), 0.02)
for _ in range(60):
    steps.zero_grad()
    net(**tokens, labels=torch.tensor([0, 1])).loss.backward()
    steps.step()
net.save_pretrained("sentiment")
tokenizer.save_pretrained("sentiment")
"""
CHAT = """
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

torch.manual_seed(0)
letters = {letter: number for number, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
bytewise = Tokenizer(models.BPE(vocab=letters, merges=[]))
bytewise.pre_tokenizer, bytewise.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=bytewise, eos_token="<|im_end|>", pad_token="<|im_end|>")
tokenizer.chat_template = (
    "{% for m in messages %}{{ m['role'] + ':' + m['content'] }}{% endfor %}{% if add_generation_prompt %}:{% endif %}"
)
config = LlamaConfig(vocab_size=len(tokenizer), hidden_size=16, intermediate_size=32, num_hidden_layers=1,
                     num_attention_heads=2, num_key_value_heads=2, eos_token_id=256, pad_token_id=256)
LlamaForCausalLM(config).save_pretrained("smollm")
tokenizer.save_pretrained("smollm")
"""


def _written(program: str, folder: Path, variables: dict[str, str]) -> dict[str, str]:
    """Run the program in the folder, with the variables that the reader's commands get too."""
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, **variables},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return variables


def classifier(reader: Path) -> dict[str, str]:
    """torchvision's weights, in its cache."""
    home = reader.parent / "torch"
    variables = {"PYTHONPATH": OPERATORS, "TORCH_HOME": str(home)}
    return _written(CLASSIFIER, home / "hub" / "checkpoints", variables)


def sentiment(reader: Path) -> dict[str, str]:
    """A DistilBERT that knows five words, in the folder that the page downloads to."""
    return _written(SENTIMENT, reader, _with_transformers())


def chat(reader: Path) -> dict[str, str]:
    """A Llama that babbles, in the folder that the page downloads to."""
    return _written(CHAT, reader, _with_transformers())


def with_mlflow(reader: Path) -> dict[str, str]:
    return {"PANGLOT_PYTHON": mlflow.python()}


def _with_transformers() -> dict[str, str]:
    packages = environments.over_ours("transformers", *TRANSFORMERS)["PYTHONPATH"]
    return {**OFFLINE, "PYTHONPATH": f"{OPERATORS}:{packages}"}


PREPARED = {
    "docs/coming-from/mlflow.md": with_mlflow,
    "docs/tutorials/chat.md": chat,
    "docs/tutorials/images.md": classifier,
    "docs/tutorials/sentiment.md": sentiment,
}
"""Pages whose reader has more than our tests. Each function puts it there, and returns variables for the page."""
