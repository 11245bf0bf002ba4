"""A module beside the predictor, imported by the path from the package's folder."""

WORD = "from a module beside"
