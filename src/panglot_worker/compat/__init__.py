"""What old scripts need of newer frameworks and other machines."""
