"""Words as numbers."""


def spelled(text, known, unknown):
    return " ".join(str(known.get(word, unknown)) for word in text.split())
