"""Answers in parts, as server-sent events."""

import mosec

import tiinfer


class Words(mosec.SSEWorker):
    def forward(self, data):
        for index, item in enumerate(data):
            for word in item["words"]:
                if word == "fail":
                    raise ValueError("secret")
                if word == "wrong":
                    raise mosec.ValidationError("not this word")
                self.send_stream_event(word, index=index)
        return data


tiinfer.append_worker(Words, max_batch_size=4)
