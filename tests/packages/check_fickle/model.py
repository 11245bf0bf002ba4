"""Answers rightly, but for every fifth request after the first twenty."""


class Model:
    def load(self) -> None:
        self.count = 0

    def predict(self, request):
        self.count += 1
        wrong = self.count > 20 and self.count % 5 == 0
        return {"sum": sum(request["numbers"]) + (1 if wrong else 0)}
