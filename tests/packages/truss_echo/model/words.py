"""A module beside the model, which imports it as model.words."""

LETTERS = ("a", "b")
