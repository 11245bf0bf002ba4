def predict(request):
    return request
