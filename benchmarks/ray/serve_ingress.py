"""Ray Serve's own ingress before the same work: python serve_ingress.py PORT MILLISECONDS"""

import signal
import sys
import time

import ray
from ray import serve
from starlette.requests import Request
from starlette.responses import Response


@serve.deployment(max_ongoing_requests=256)
class Script:
    def __init__(self, seconds):
        self.seconds = seconds

    @serve.batch(max_batch_size=32, batch_wait_timeout_s=0.001)
    async def together(self, bodies):
        if self.seconds:
            time.sleep(self.seconds)
        return [str(len(body)) for body in bodies]

    async def __call__(self, request: Request):
        return Response(await self.together(await request.body()), media_type="application/json")


if __name__ == "__main__":
    ray.init(num_cpus=2, include_dashboard=False, configure_logging=False)
    serve.start(http_options={"host": "127.0.0.1", "port": int(sys.argv[1])})
    serve.run(Script.bind(float(sys.argv[2]) / 1000), route_prefix="/")
    signal.pause()
