"""Asks for two processes; every answer names its request and its process."""

import os
import time

import tiinfer


class Echo(tiinfer.Model):
    def __init__(self, model_dir):
        super().__init__(model_dir)
        self.workers = 2

    def load(self):
        return True

    def predict(self, request):
        time.sleep(request.get("sleep", 0))
        return {"id": request["id"], "pid": os.getpid()}
