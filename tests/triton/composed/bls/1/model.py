"""Calls other models, in every way that there is."""

import asyncio
import threading

import numpy as np
import triton_python_backend_utils as pb_utils


def called(model, outputs, inputs, **more):
    tensors = [pb_utils.Tensor(name, array) for name, array in inputs.items()]
    return pb_utils.InferenceRequest(model_name=model, requested_output_names=outputs, inputs=tensors, **more)


def output(response, name):
    if response.has_error():
        raise pb_utils.TritonModelException(response.error().message())
    return pb_utils.get_output_tensor_by_name(response, name).as_numpy()


class TritonPythonModel:
    def execute(self, requests):
        return [self.answered(request) for request in requests]

    def answered(self, request):
        how, text = (tensor.as_numpy() for tensor in request.inputs())
        word = getattr(self, how[0].decode())(text.reshape(1, 1))
        return pb_utils.InferenceResponse([pb_utils.Tensor("WORD", np.array([word], object))])

    def chain(self, text):
        counts = output(called("letters", ["COUNTS"], {"TEXT": text}).exec(), "COUNTS")
        scores = output(called("network", ["y"], {"x": counts}, model_version=1).exec(), "y")
        return output(called("words", ["WORD"], {"SCORES": scores}).exec(), "WORD")[0, 0]

    def ensemble(self, text):
        return output(called("pipeline", ["ANSWER"], {"SENTENCE": text}).exec(), "ANSWER")[0, 0]

    def threads(self, text):
        words = {}

        def work(number):
            words[number] = self.chain(text)

        workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return ",".join(word.decode() for word in words.values())

    def missing(self, text):
        response = called("nowhere", ["Y"], {"X": text}).exec()
        return f"{response.error().message()} {response.error().code()}"

    def error(self, text):
        response = called("letters", ["COUNTS"], {"TEXT": text}).exec()
        return f"{response.error().message()} {response.error().code()}"

    def timeout(self, text):
        response = called("letters", ["COUNTS"], {"TEXT": np.array([["wait"]], object)}, timeout=300000).exec()
        return response.error().message()

    def wrong(self, text):
        return called("letters", ["COUNTS"], {"OTHER": text}).exec().error().message()

    def doubled(self, text):
        """An input that is there twice, for a model that answers once and for a decoupled one."""
        tensors = [pb_utils.Tensor("TEXT", text) for _ in range(2)]
        once = pb_utils.InferenceRequest(model_name="letters", requested_output_names=["COUNTS"], inputs=tensors)
        numbers = [pb_utils.Tensor("N", np.array([1], np.int32)) for _ in range(2)]
        parts = pb_utils.InferenceRequest(model_name="counter", requested_output_names=["TOKEN"], inputs=numbers)
        errors = [once.exec().error(), *(part.error() for part in parts.exec(decoupled=True))]
        return "|".join(f"{error.message()} {error.code()}" for error in errors)

    def ready(self, text):
        return f"{pb_utils.is_model_ready('letters')} {pb_utils.is_model_ready('letters', '7')}"

    def stream(self, text):
        number = np.array([int(text[0, 0])], np.int32)
        said = []
        for response in called("counter", ["TOKEN"], {"N": number}).exec(decoupled=True):
            said.append(response.error().message() if response.has_error() else output(response, "TOKEN")[0].decode())
        return "|".join(said)

    def early(self, text):
        responses = called("counter", ["TOKEN"], {"N": np.array([2000], np.int32)}).exec(decoupled=True)
        return output(next(iter(responses)), "TOKEN")[0]

    def impatient(self, text):
        """Gives up streams that send nothing, and then reads one that does."""

        async def first(number):
            call = called("counter", ["TOKEN"], {"N": np.array([number], np.int32)})
            async for response in await call.async_exec(decoupled=True):
                return output(response, "TOKEN")[0]
            return None

        async def work():
            for _ in range(40):
                try:
                    await asyncio.wait_for(first(99), 0.01)
                except TimeoutError:
                    continue
            return await first(3)

        return asyncio.run(work())

    def whole(self, text):
        """A decoupled model that is asked for one response."""
        return called("counter", ["TOKEN"], {"N": np.array([2], np.int32)}).exec().error().message()

    def reload(self, text):
        """Unload a model, which others see, and load it again."""
        said = []
        for change in (pb_utils.unload_model, pb_utils.load_model):
            try:
                change("letters")
            except pb_utils.TritonModelException as error:
                said.append(str(error))
            said.append(str(pb_utils.is_model_ready("letters")))
        return "|".join(said)

    def absent(self, text):
        try:
            pb_utils.load_model("nowhere")
        except pb_utils.TritonModelException as error:
            return str(error)

    def changed(self, text):
        try:
            pb_utils.load_model("letters", config="{}")
        except pb_utils.TritonModelException as error:
            return str(error)
