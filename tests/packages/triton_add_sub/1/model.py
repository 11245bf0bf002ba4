import json

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """The sum and the difference of two inputs."""

    def initialize(self, args):
        self.model_config = model_config = json.loads(args["model_config"])
        self.output0_dtype = pb_utils.triton_string_to_numpy(
            pb_utils.get_output_config_by_name(model_config, "OUTPUT0")["data_type"]
        )
        self.output1_dtype = pb_utils.triton_string_to_numpy(
            pb_utils.get_output_config_by_name(model_config, "OUTPUT1")["data_type"]
        )
        self.limit = float(model_config["parameters"]["limit"]["string_value"])
        pb_utils.Logger.log_info(f"{args['model_name']} {args['model_version']} on {args['model_instance_kind']}")

    def execute(self, requests):
        print(f"a call with {len(requests)}", flush=True)
        responses = []
        for request in requests:
            in_0 = pb_utils.get_input_tensor_by_name(request, "INPUT0")
            in_1 = pb_utils.get_input_tensor_by_name(request, "INPUT1")
            if np.abs(in_0.as_numpy()).max(initial=0) > self.limit:
                error = pb_utils.TritonError("INPUT0 is beyond the limit", pb_utils.TritonError.INVALID_ARG)
                responses.append(pb_utils.InferenceResponse(output_tensors=[], error=error))
                continue
            parameters = json.loads(request.parameters())
            if parameters.get("fail"):
                raise ValueError("a secret of the script")
            out_0 = in_0.as_numpy() + in_1.as_numpy()
            out_1 = in_0.as_numpy() - in_1.as_numpy()
            tensors = [
                pb_utils.Tensor("OUTPUT0", out_0.astype(self.output0_dtype)),
                pb_utils.Tensor("OUTPUT1", out_1.astype(self.output1_dtype)),
            ]
            told = {"rows": len(out_0), "last": True, "of": "é"}
            if parameters.get("tell"):
                told["of"] = f"{request.correlation_id()} {request.flags()} {request.timeout()} {' '.join(parameters)}"
            responses.append(pb_utils.InferenceResponse(output_tensors=tensors, parameters=told))
        return responses

    def finalize(self):
        print("Cleaning up...", flush=True)
