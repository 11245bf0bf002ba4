"""The SDK's modules that scripts import by name."""
