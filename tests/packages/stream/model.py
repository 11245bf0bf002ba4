import time


def predict(request):
    for number in range(request["count"]):
        if number == request.get("fail_at"):
            raise ValueError("stopped half-way")
        time.sleep(request.get("pause", 0))
        yield {"number": number}
