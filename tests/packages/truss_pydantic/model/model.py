from pydantic import BaseModel


class Box(BaseModel):
    width: int
    height: int = 1


class Input(BaseModel):
    name: str
    boxes: list[Box] = []
    note: str | None = None


class Output(BaseModel):
    area: int
    name: str


class Model:
    def load(self):
        pass

    def predict(self, request: Input) -> Output:
        return Output(area=sum(box.width * box.height for box in request.boxes), name=request.name)
