"""The mlflow dialect, as the front knows it."""
