"""The log of a server: its lines, how they are written without waiting, and spans of OpenTelemetry."""
