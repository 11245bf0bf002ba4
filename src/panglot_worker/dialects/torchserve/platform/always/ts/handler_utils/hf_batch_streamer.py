"""Texts of a batch while transformers makes them: `model.generate(..., streamer=TextIteratorStreamerBatch(...))`."""

from transformers.generation.streamers import BaseStreamer, TextIteratorStreamer


class TextIteratorStreamerBatch(BaseStreamer):
    """Gives a list of `{"text": ...}`, one for each request, until the first of them ends."""

    def __init__(self, tokenizer, batch_size, skip_prompt=False, timeout=None, **decode_kwargs):
        self.batch_size = batch_size
        self.streamers = [
            TextIteratorStreamer(tokenizer, skip_prompt, timeout, **decode_kwargs) for _ in range(batch_size)
        ]
        self.streamer_iterators = [iter(streamer) for streamer in self.streamers]

    def put(self, value):
        """Take the newest tokens: a row of the tensor for each request. Raises ValueError for another number."""
        if len(value) != self.batch_size:
            raise ValueError("the streamer is for %d requests, and got tokens of %d" % (self.batch_size, len(value)))
        for row, streamer in enumerate(self.streamers):
            streamer.put(value[row : row + 1])

    def end(self):
        for streamer in self.streamers:
            streamer.end()

    def __iter__(self):
        return self

    def __next__(self):
        # Every stream is read before any end is told: those that go on have one text less to give.
        texts = [next(iterator, None) for iterator in self.streamer_iterators]
        if None in texts:
            raise StopIteration
        return [{"text": text} for text in texts]
