"""Doubles rows; one that is negative fails the call it is in."""


class Model:
    def predict_batch(self, items):
        if not all(isinstance(item, dict) for item in items):
            return [{"native": item} if isinstance(item, int) else item for item in items]
        if any((item["x"] < 0).any() for item in items):
            raise ValueError("a negative row")
        return [{"twice": item["x"] * 2, "calls": len(items)} for item in items]
