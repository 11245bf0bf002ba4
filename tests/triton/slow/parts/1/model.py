"""Sends responses of 100 kB as fast as it can: from execute, from a thread for each request, or one thread for all."""

import queue
import threading

import numpy
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.shared = queue.SimpleQueue()
        threading.Thread(target=self.answer_all, daemon=True).start()

    def execute(self, requests):
        for request in requests:
            how = pb_utils.get_input_tensor_by_name(request, "HOW").as_numpy()[0].decode()
            count = int(pb_utils.get_input_tensor_by_name(request, "COUNT").as_numpy()[0])
            sender = request.get_response_sender()
            if how == "shared":
                self.shared.put((sender, count))
            elif how == "thread":
                threading.Thread(target=self.answer, args=(sender, count), daemon=True).start()
            else:
                self.answer(sender, count)

    def answer(self, sender, count):
        for number in range(count):
            if sender.is_cancelled():
                print("cancelled", flush=True)
                break
            self.send(sender, number)
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def answer_all(self):
        """A response of each request in turn."""
        waiting = []
        while True:
            while not waiting or not self.shared.empty():
                waiting.append((*self.shared.get(), 0))
            left = []
            for sender, count, number in waiting:
                if number < count and not sender.is_cancelled():
                    self.send(sender, number)
                    left.append((sender, count, number + 1))
                else:
                    sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
            waiting = left

    def send(self, sender, number):
        text = f"{number} " + "x" * 100_000
        sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("PART", numpy.array([text.encode()], object))]))
