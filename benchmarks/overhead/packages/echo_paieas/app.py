"""Echo of a processor of PAI-EAS, which reads and writes the text by the library that plain scripts are read by."""

from __future__ import annotations

import allspark
import orjson


class Echo(allspark.BaseProcessor):
    def process(self, data: bytes) -> tuple[bytes, int]:
        return orjson.dumps(orjson.loads(data)), 200


if __name__ == "__main__":
    Echo().run()
