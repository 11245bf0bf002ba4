"""MLServer: python mlserver_echo.py PORT"""

import asyncio
import os
import sys
import tempfile

from mlserver import MLModel, MLServer, ModelSettings, Settings
from mlserver.settings import ModelParameters
from mlserver.types import InferenceRequest, InferenceResponse, ResponseOutput


class Echo(MLModel):
    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        tensor = payload.inputs[0]
        output = ResponseOutput(name="y", shape=tensor.shape, datatype=tensor.datatype, data=tensor.data)
        return InferenceResponse(model_name=self.name, outputs=[output])


async def main(port: int) -> None:
    os.chdir(tempfile.mkdtemp())
    settings = Settings(host="127.0.0.1", http_port=port, grpc_port=port + 1, metrics_port=port + 2, parallel_workers=1)
    model = ModelSettings(name="echo", implementation=Echo, parameters=ModelParameters(), max_batch_size=32,
                          max_batch_time=0.001)  # fmt: skip
    await MLServer(settings).start([model])


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import mlserver_echo

    asyncio.run(mlserver_echo.main(int(sys.argv[1])))
