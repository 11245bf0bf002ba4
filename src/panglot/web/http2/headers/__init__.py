"""Headers of HTTP/2: read by HPACK, checked, and written."""
