LABELS = ["cat", "dog"]
