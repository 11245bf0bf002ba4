"""The handler `object_detector`: boxes, labels and scores."""

from torchvision import transforms

from ts.torch_handler.vision_handler import VisionHandler
from ts.utils.util import map_class_to_label


class ObjectDetector(VisionHandler):
    """Answers with the boxes whose score is at least `threshold`."""

    image_processing = transforms.Compose([transforms.ToTensor()])
    threshold = 0.5

    def postprocess(self, data):
        return [self._boxes(row) for row in data]

    def _boxes(self, row):
        sure = row["scores"] >= self.threshold
        boxes, kinds, scores = (row[key][sure].tolist() for key in ("boxes", "labels", "scores"))
        labelled = [map_class_to_label([[box]], self.mapping, [[kind]])[0] for box, kind in zip(boxes, kinds)]
        return [{**entry, "score": score} for entry, score in zip(labelled, scores)]
