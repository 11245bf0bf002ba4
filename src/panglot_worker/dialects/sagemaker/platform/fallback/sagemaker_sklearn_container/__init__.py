"""What scripts import of the scikit-learn container."""
