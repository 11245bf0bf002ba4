import sys

sys.exit(4)


def predict(request):
    return 1
