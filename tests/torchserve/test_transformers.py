"""A handler that sends what transformers makes while it makes it, for a batch of requests."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from support import transformers
from support.server import serving

pytestmark = [pytest.mark.rest("installs transformers, which needs torch"), pytest.mark.timeout(400)]
HANDLER = """
from threading import Thread

from transformers import AutoModelForCausalLM, AutoTokenizer
from ts.handler_utils.hf_batch_streamer import TextIteratorStreamerBatch
from ts.handler_utils.utils import send_intermediate_predict_response
from ts.torch_handler.base_handler import BaseHandler


class StoryHandler(BaseHandler):
    def initialize(self, ctx):
        folder = ctx.system_properties["model_dir"] + "/story"
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder)
        self.initialized = True

    def handle(self, data, context):
        self.context = context
        texts = [row["body"] for row in data]
        tokens = self.tokenizer(texts, return_tensors="pt", add_special_tokens=False)
        streamer = TextIteratorStreamerBatch(tokenizer=self.tokenizer, batch_size=len(texts), skip_prompt=True)
        options = dict(max_new_tokens=4, min_new_tokens=4, do_sample=False, pad_token_id=0, streamer=streamer)
        Thread(target=self.model.generate, kwargs={**tokens, **options}).start()
        for parts in streamer:
            send_intermediate_predict_response(
                [part["text"] for part in parts], context.request_ids, "Intermediate Prediction success", 200, context
            )
        return ["|%d" % len(texts)] * len(texts)
"""


@pytest.mark.document("torchserve.47", "torchserve.15")
def test_texts_of_a_batch_come_in_parts(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    env = transformers.variables(tmp_path / "stubs")
    (tmp_path / "models").mkdir()
    models = transformers.made(tmp_path / "models", env)
    expected = json.loads((models / "expected.json").read_text())["story"]
    folder = tmp_path / "tales"
    folder.mkdir()
    shutil.copytree(models / "story", folder / "story")
    (folder / "story_handler.py").write_text(HANDLER)
    (folder / "model-config.yaml").write_text("batchSize: 2\nmaxBatchDelay: 2000\n")
    with serving(folder, env=env) as server, ThreadPoolExecutor(2) as pool:

        def asking(text: str) -> str:
            headers = {"content-type": "text/plain"}
            return httpx.post(f"{server.url}/predictions/tales", content=text, headers=headers, timeout=60).text

        told = list(pool.map(asking, ["once upon", "a time"]))
        assert [" ".join(text.split()) for text in told] == [f"{text}|2" for text in expected], server.log
