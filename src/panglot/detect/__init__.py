"""How each dialect is recognised, one module per dialect. Nothing of a package is ever run here."""
