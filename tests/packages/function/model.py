def predict(request):
    return {"got": request}
