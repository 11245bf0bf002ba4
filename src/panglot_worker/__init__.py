"""What runs beside a user's script. Standard library only; CPython 3.8 and newer."""
