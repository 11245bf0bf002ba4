"""Content types by the names that scripts know."""

JSON = "application/json"
CSV = "text/csv"
OCTET_STREAM = "application/octet-stream"
ANY = "*/*"
NPY = "application/x-npy"
UTF8_TYPES = [JSON, CSV]
JPEG, PNG, TIFF, BMP = "image/jpeg", "image/png", "image/tiff", "image/bmp"
GIF, WEBP, X_IMAGE = "image/gif", "image/webp", "image/x-image"
VISION_TYPES = [JPEG, PNG, TIFF, BMP, GIF, WEBP, X_IMAGE]
FLAC, MP3, WAV, OGG, X_AUDIO = "audio/x-flac", "audio/mpeg", "audio/wave", "audio/ogg", "audio/x-audio"
AUDIO_TYPES = [FLAC, MP3, WAV, OGG, X_AUDIO]
