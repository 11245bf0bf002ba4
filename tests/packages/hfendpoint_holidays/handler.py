import datetime


class EndpointHandler:
    def __init__(self, path=""):
        self.holidays = {datetime.date(2022, 7, 4): "Independence Day"}

    def __call__(self, data):
        inputs = data.pop("inputs", data)
        date = data.pop("date", None)
        # check if date exists and if it is a holiday
        if date is not None and datetime.date.fromisoformat(date) in self.holidays:
            return [{"label": "happy", "score": 1}]
        if not isinstance(inputs, str):
            return {"error": "inputs must be a text"}
        return [{"label": "sad", "score": len(inputs)}]
