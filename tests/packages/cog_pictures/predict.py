"""Several files in, several files out, one after another: as models for pictures do it."""

import argparse
import tempfile
from typing import Iterator, List

from cog import BasePredictor, Input, Path

OPTIONS = argparse.ArgumentParser()
OPTIONS.add_argument("--mark", default="+")


class Predictor(BasePredictor):
    def setup(self):
        self.mark = OPTIONS.parse_args().mark

    def predict(self, pictures: List[Path] = Input(description="files")) -> Iterator[Path]:
        for picture in pictures:
            out = Path(tempfile.mkdtemp()) / "out.txt"
            out.write_text(picture.read_text() + self.mark)
            yield out
