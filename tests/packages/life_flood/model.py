import os
import sys


def predict(request):
    if request == "lines":
        for number in range(20_000):
            print(str(number) * 40)
    if request == "long":
        print("x" * 50_000_000)
    if request == "binary":
        os.write(1, bytes(range(256)) * 100 + b"\n")
        sys.stderr.write("\x1b[2J\x07\r\n")
    return request
