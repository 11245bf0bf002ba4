"""A story word by word, as handlers of language models send it: a thread makes the words, the handler sends them."""

import json
import threading
from queue import Queue

from ts.context import Context
from ts.handler_utils.utils import send_intermediate_predict_response

END = None


class StoryHandler:
    def __init__(self):
        self.initialized = False

    def initialize(self, ctx: Context):
        config = ctx.model_yaml_config["handler"]
        self.words = config["words"].split()
        self.most = config["max_new_tokens"]
        self.initialized = True

    def handle(self, data, context):
        assert len(data) == 1, "stories are told one at a time"
        request = data[0].get("data") or data[0].get("body")
        if isinstance(request, (bytes, bytearray)):
            request = json.loads(request)
        count = min(int(request.get("max_new_tokens", self.most)), self.most)
        queue = Queue()
        threading.Thread(target=self.generate, args=(queue, count)).start()
        context.set_response_content_type(0, "text/plain")
        while True:
            word = queue.get()
            if word is END:
                return [""]
            send_intermediate_predict_response([word + " "], context.request_ids, "Intermediate success", 200, context)

    def generate(self, queue, count):
        for word in self.words[:count]:
            queue.put(word)
        queue.put(END)
