"""What stands before every message of gRPC."""

from __future__ import annotations

import struct

PREFIX = struct.Struct(">BI")
"""Whether the message is compressed, and its size."""
