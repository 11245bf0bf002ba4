def choose(labels, text):
    return labels[len(text) > 5]
