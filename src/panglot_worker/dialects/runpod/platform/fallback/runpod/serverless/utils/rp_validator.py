"""Validation of a job's input by a schema. The order of the checks, and what they leave out, is the original's."""

from __future__ import annotations

import json
from typing import Any, Dict, List

UNEXPECTED_INPUT_ERROR = "Unexpected input. {} is not a valid input option."
MISSING_REQUIRED_ERROR = "{} is a required input."
MISSING_DEFAULT_ERROR = "Schema error, missing default value for {}."
MISSING_TYPE_ERROR = "Schema error, missing type for {}."
INVALID_TYPE_ERROR = "{} should be {} type, not {}."
CONSTRAINTS_ERROR = "{} does not meet the constraints."
SCHEMA_ERROR = "Schema error, {} is not a dictionary."


def validate(raw_input: Dict[str, Any], schema: Dict[str, Any]) -> Dict[str, Any]:
    """`{"validated_input": ...}` with defaults filled in, or `{"errors": [...]}`."""
    errors: List[str] = [UNEXPECTED_INPUT_ERROR.format(key) for key in raw_input if key not in schema]
    validated = dict(raw_input)
    for key, rules in schema.items():
        if not isinstance(rules, dict):
            try:
                schema[key] = json.loads(rules)
            except json.JSONDecodeError:
                errors.append(SCHEMA_ERROR.format(key))
    for key, rules in schema.items():
        errors += _completed(key, rules, validated)
    for key, rules in schema.items():
        errors += _checked(key, rules, validated)
    return {"errors": errors} if errors else {"validated_input": validated}


def _completed(key: str, rules: Any, validated: Dict[str, Any]) -> List[str]:
    """Fill in the default of an input that is missing; what is wrong with it or its rules."""
    errors = []
    if "type" not in rules:
        errors.append(MISSING_TYPE_ERROR.format(key))
    if "required" not in rules or (rules["required"] and key not in validated):
        errors.append(MISSING_REQUIRED_ERROR.format(key))
    elif key not in validated:
        if "default" in rules:
            validated[key] = rules["default"]
        else:
            errors.append(MISSING_DEFAULT_ERROR.format(key))
    return errors


def _checked(key: str, rules: Any, validated: Dict[str, Any]) -> List[str]:
    """What is wrong with the type or the value of an input."""
    errors = []
    if key in validated:
        value = validated[key]
        if rules["type"] is float and type(value) in (int, float):
            value = validated[key] = float(value)
        # A value of the default's type skips the constraints too: so it is in the original.
        if "default" in rules and isinstance(value, type(rules["default"])):
            return errors
        if not isinstance(value, rules["type"]):
            errors.append(INVALID_TYPE_ERROR.format(key, rules["type"], type(value)))
    if "constraints" in rules and not rules["constraints"](validated.get(key)):
        errors.append(CONSTRAINTS_ERROR.format(key))
    return errors
