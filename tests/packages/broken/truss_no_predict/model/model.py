class Model:
    def load(self):
        pass
