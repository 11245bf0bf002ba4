import os


class PreTrainedPipeline:
    def __init__(self, path=""):
        self.files = sorted(os.listdir(path))

    def __call__(self, data):
        return {"files": self.files, "module": type(self).__module__, "keys": sorted(data)}
