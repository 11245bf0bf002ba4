"""What the machine gives and limits: control groups, devices, temporary folders."""
