"""The SDK's helpers for handlers."""

from __future__ import annotations

from runpod.serverless.utils.rp_download import download_files_from_urls
from runpod.serverless.utils.rp_upload import upload_file_to_bucket, upload_in_memory_object

__all__ = ["download_files_from_urls", "upload_file_to_bucket", "upload_in_memory_object"]
