"""Answers in the shapes that scripts of the platforms return, whatever the picture."""

BOX = {"xmin": 2, "ymin": 3, "xmax": 20, "ymax": 15}
ANSWERS = {
    "named sides": [{"label": "cat", "score": 0.9, "box": BOX}],
    "corners": {"boxes": [[2, 3, 20, 15], [5, 5, 9, 9]], "labels": ["cat", "<img src=x>"], "scores": [0.9, 0.4]},
    "modelarts": {
        "detection_classes": ["cat", "dog"],
        "detection_boxes": [[3, 2, 15, 20], [1, 1, 4, 4]],
        "detection_scores": ["0.9", "0.3"],
    },
    "evals": {
        "code": 0,
        "message": "",
        "result": {"detections": [{"class": "cat", "score": 0.9, "pts": [[2, 3], [20, 3], [20, 15], [2, 15]]}]},
    },
    "paddle": {"boxes": [[0, 0.9, 2, 3, 20, 15], [1, 0.5, 4, 4, 8, 8]]},
    "shares": [{"class": "cat", "confidence": 0.9, "bbox": [0.1, 0.1, 0.5, 0.5]}],
    "points": [{"keypoints": [[2, 3, 1], [4, 5, 1], [6, 7, 0]], "score": 0.8}],
    "mask": {"mask": [[0, 0, 1, 1], [0, 1, 1, 1], [0, 0, 0, 0]], "label": "sky"},
    "labels": {"predicted_label": "cat", "scores": [["cat", "0.900"], ["dog", "0.100"]]},
    "table": {"rows": [{"id": 1, "word": "a"}, {"id": 2, "word": "b"}]},
}


def predict(request):
    """One of the answers above, by the field `kind`."""
    return ANSWERS[request["kind"]]


def example():
    from panglot import File

    dot = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de")
    return {"image": File("dot.png", "image/png", dot), "kind": "named sides"}
