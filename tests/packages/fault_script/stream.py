"""Answers in parts: as many as the item says, with a wait for a file after the second."""

from __future__ import annotations

import harm


class Model:
    def predict(self, item):
        if item.get("op") != "stream":
            return harm.act(item)
        return self.parts(item)

    def parts(self, item):
        try:
            for number in range(item["parts"]):
                if number == 2 and "gate" in item:
                    harm.wait(item)
                if number == 2 and item.get("then"):
                    harm.act({"id": item["id"], "op": item["then"]})
                yield {"id": item["id"], "part": number}
        finally:
            harm.say(f"stream {item['id']} closed")
