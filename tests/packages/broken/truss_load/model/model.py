class Model:
    def __init__(self, **kwargs):
        self._secrets = kwargs["secrets"]

    def load(self):
        self._token = self._secrets["hf_access_token"]

    def predict(self, model_input):
        return model_input
