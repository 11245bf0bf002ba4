import os
import no_such_package_anywhere


def predict(request):
    return 1
