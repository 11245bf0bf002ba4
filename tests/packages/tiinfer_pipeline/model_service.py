"""Three stages: two processes with variables of their own, then batches, then bytes of its own."""

import os

import mosec

import tiinfer


class Number(mosec.Worker):
    def forward(self, data):
        if not isinstance(data, dict) or "number" not in data:
            raise mosec.ValidationError("send a number")
        return {**data, "who": os.environ.get("WHO"), "ids": [self.worker_id, self.max_batch_size, self.stage]}


class Double(mosec.Worker):
    example = [{"number": 1}]

    def forward(self, data):
        if any(item["number"] == 13 for item in data):
            raise ValueError("one of them is 13")
        return [{**item, "number": item["number"] * 2, "batch": len(data)} for item in data]


class Text(mosec.Worker):
    resp_mime_type = "text/csv"

    def forward(self, data):
        if data["number"] == 14:
            raise mosec.ClientError("no sevens")
        return data

    def serialize(self, data):
        ids = "/".join(map(str, data["ids"]))
        return f"{data['number']},{data['who']},{ids},{data.get('batch', 0)}".encode()


tiinfer.append_worker(Number, num=2, env=[{"WHO": "first"}, {"WHO": "second"}])
tiinfer.append_worker(Double, max_batch_size=4)
tiinfer.append_worker(Text)
