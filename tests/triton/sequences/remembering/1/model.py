"""The sum of each sequence so far, by what the server remembers for it."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answered(request) for request in requests]

    def answered(self, request):
        before, number, who = (
            pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in ("BEFORE", "X", "WHO")
        )
        assert who.item().decode() == str(request.correlation_id())
        tensors = [pb_utils.Tensor("SUM", before + number), pb_utils.Tensor("AFTER", before + number)]
        return pb_utils.InferenceResponse(tensors)
