import base64
from io import BytesIO

from PIL import Image, ImageOps


class EndpointHandler:
    def __init__(self, path=""):
        pass

    def __call__(self, data):
        image = data["inputs"]
        if isinstance(image, str):
            image = Image.open(BytesIO(base64.b64decode(image))).convert("RGB")
        return ImageOps.mirror(image)
