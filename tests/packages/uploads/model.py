from panglot import ClientError, File


def shape(value):
    return {"name": value.name, "type": value.type, "size": len(value.bytes)} if isinstance(value, File) else value


def predict(request):
    if isinstance(request, dict):
        if "image" not in request:
            raise ClientError("a field 'image' is needed", status=422)
        return {name: shape(value) for name, value in request.items()}
    return shape(request)
