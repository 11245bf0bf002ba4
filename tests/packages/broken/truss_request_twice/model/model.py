class Model:
    def __init__(self, **kwargs):
        pass

    def predict(self, model_input, request):
        return model_input
