"""Takes unions and lists of lists, of the types that cog 0.9 allows; shows what it has got."""

from typing import List, Union

from cog import BasePredictor, Input, Path


def shown(value):
    if isinstance(value, Path):
        return {"a file": value.read_text()}
    return [shown(each) for each in value] if isinstance(value, list) else value


class Predictor(BasePredictor):
    def predict(
        self,
        rows: List[List[int]] = Input(default=[[1]]),
        deep: List[List[List[str]]] = Input(default=[]),
        number: Union[int, float] = Input(default=1, ge=0, le=9),
        text: Union[str, int] = Input(default="a"),
        prompt: Union[str, List[str]] = Input(default="p", description="one or more"),
        mixed: List[Union[int, str]] = Input(default=[]),
        picture: Union[Path, str] = Input(default="none"),
        pictures: Union[List[Path], Path] = Input(default=None),
        flag: Union[bool, int] = Input(default=False),
        names: List[str] = Input(default=[], min_length=2),
        counts: List[int] = Input(default=[], ge=0, description="whole"),
        plain: str = Input(default="x"),
    ) -> str:
        values = {name: shown(value) for name, value in locals().items() if name != "self"}
        values["number"] = repr(number)
        return repr(values)
