"""What scripts import of the XGBoost container."""
