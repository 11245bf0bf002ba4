"""Ray Serve: python ray_echo.py PORT"""

import signal
import sys

import ray
from ray import serve
from starlette.requests import Request


@serve.deployment(max_ongoing_requests=128)
class Echo:
    @serve.batch(max_batch_size=32, batch_wait_timeout_s=0.001)
    async def together(self, items):
        return items

    async def __call__(self, request: Request):
        return await self.together(await request.json())


if __name__ == "__main__":
    ray.init(num_cpus=2, include_dashboard=False, configure_logging=False)
    serve.start(http_options={"host": "127.0.0.1", "port": int(sys.argv[1])})
    serve.run(Echo.bind(), route_prefix="/")
    signal.pause()
