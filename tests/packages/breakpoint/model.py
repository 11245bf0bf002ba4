def predict(request):
    answer = request["value"] + 1
    breakpoint()
    return answer
