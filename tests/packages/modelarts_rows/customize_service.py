"""A Scikit_Learn service without a model: it answers with the rows it was sent, or raises."""

from model_service.python_model_service import XgSklServingBaseService


class Rows(XgSklServingBaseService):
    def _inference(self, data):
        assert data != [["assert"]], "no row says assert"
        return data

    def _postprocess(self, data):
        return [{"row": row, "text": "猫"} for row in data]
