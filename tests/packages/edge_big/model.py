"""Answers with as many bytes as the request asks for, and says in the log when it has."""


def predict(request):
    size = request.get("size")
    if size is None:
        return {"size": 0}
    if size > 1_000_000:
        print("made", size, "bytes", flush=True)
    return b"x" * size
