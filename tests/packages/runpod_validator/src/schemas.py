INPUT_SCHEMA = {
    "prompt": {"type": str, "required": True},
    "steps": {"type": int, "required": False, "default": 3, "constraints": lambda steps: steps < 10},
    "scale": {"type": float, "required": False, "default": 1.0},
}
