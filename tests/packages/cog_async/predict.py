import asyncio

from cog import AsyncConcatenateIterator, BasePredictor


class Predictor(BasePredictor):
    async def setup(self):
        self.running = self.most = 0

    async def predict(self, count: int, seconds: float = 0.0) -> AsyncConcatenateIterator[str]:
        self.running += 1
        self.most = max(self.most, self.running)
        for number in range(count):
            await asyncio.sleep(seconds)
            yield "%d of %d" % (number, self.most)
        self.running -= 1
