"""A model with the methods of OpenAI's and Anthropic's clients."""

import asyncio
import json


class Model:
    def __init__(self, **kwargs):
        self._secrets = kwargs["secrets"]

    def predict(self, model_input):
        return {"prompt": model_input}

    async def chat_completions(self, model_input):
        words = model_input["messages"][-1]["content"].split()
        if model_input.get("stream"):
            return self.events(words, model_input["model"])
        message = {"role": "assistant", "content": " ".join(reversed(words))}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        usage = {"prompt_tokens": len(words), "completion_tokens": len(words), "total_tokens": 2 * len(words)}
        about = {"id": "chat-1", "object": "chat.completion", "created": 1, "model": model_input["model"]}
        return {**about, "choices": [choice], "usage": usage}

    async def events(self, words, name):
        about = {"id": "chat-1", "object": "chat.completion.chunk", "created": 1, "model": name}
        for word in reversed(words):
            await asyncio.sleep(0)
            choice = {"index": 0, "delta": {"content": word + " "}, "finish_reason": None}
            yield f"data: {json.dumps({**about, 'choices': [choice]})}\n\n"
        yield "data: [DONE]\n\n"

    def completions(self, model_input):
        choice = {"index": 0, "text": model_input["prompt"][::-1], "finish_reason": "stop", "logprobs": None}
        about = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": model_input["model"]}
        return {**about, "choices": [choice]}

    def embeddings(self, model_input):
        texts = model_input["input"]
        texts = [texts] if isinstance(texts, str) else texts
        data = [{"object": "embedding", "index": i, "embedding": [float(len(t))]} for i, t in enumerate(texts)]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return {"object": "list", "model": model_input["model"], "data": data, "usage": usage}

    def messages(self, model_input):
        return {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "yes"}]}
