class Model:
    def predict_batch(self, items):
        return [{"value": item, "batch": len(items)} for item in items]
