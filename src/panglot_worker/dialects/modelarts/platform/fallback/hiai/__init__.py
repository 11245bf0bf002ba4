"""The names Ascend 310 scripts import, where the HiAI runtime is not installed."""
