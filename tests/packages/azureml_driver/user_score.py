called = []


def init(calls):
    called.extend([*calls, "user"])


def run(text):
    return {"called": called, "text": text}
