"""Models of Baseten's Truss: config.yaml beside model/model.py."""
