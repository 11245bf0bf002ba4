"""Uploading results to a bucket by boto3; without the bucket's variables they are saved beside the script."""

from __future__ import annotations

import io
import logging
import os
import shutil
import threading
import time
import uuid
from typing import Any, Dict, List, Optional, Tuple

logger = logging.getLogger("runpod upload utility")
WEEK = 604800
"""Seconds that a signed address is good for."""


def get_boto_client(bucket_creds: Optional[Dict[str, str]] = None) -> Tuple[Any, Any]:
    """A client of boto3 and its transfer settings; None where no bucket is named, or boto3 is not installed."""
    names = {"endpointUrl": "BUCKET_ENDPOINT_URL", "accessId": "BUCKET_ACCESS_KEY_ID",
             "accessSecret": "BUCKET_SECRET_ACCESS_KEY"}  # fmt: skip
    given = bucket_creds or {key: os.environ.get(name) for key, name in names.items()}
    if not all(given.get(key) for key in names):
        return None, None
    try:
        from boto3 import session
        from boto3.s3.transfer import TransferConfig
        from botocore.config import Config
    except ImportError:
        logger.warning("boto3 is not installed, so that nothing is uploaded: pip install boto3")
        return None, None
    client = session.Session().client(
        "s3",
        endpoint_url=given["endpointUrl"],
        aws_access_key_id=given["accessId"],
        aws_secret_access_key=given["accessSecret"],
        config=Config(signature_version="s3v4", retries={"max_attempts": 3, "mode": "standard"}),
        region_name=extract_region_from_url(str(given["endpointUrl"])),
    )
    return client, TransferConfig(use_threads=True)


def extract_region_from_url(endpoint_url: str) -> Optional[str]:
    """The region that the address of a bucket names."""
    if ".s3." in endpoint_url:
        return endpoint_url.split(".s3.")[1].split(".")[0]
    if endpoint_url.rstrip("/").endswith(".digitaloceanspaces.com"):
        return endpoint_url.split(".")[1]
    return None


def upload_image(
    job_id: str,
    image_location: str,
    result_index: int = 0,
    results_list: Optional[List[Any]] = None,
    bucket_name: Optional[str] = None,
) -> str:
    """Upload a picture below the job's id, and return its signed address."""
    extension = os.path.splitext(image_location)[1]
    name = str(uuid.uuid4())[:8] + extension
    client, _ = get_boto_client()
    if client is None:
        place = _save_beside(name, "simulated_uploaded", source=image_location)
    else:
        bucket, key = bucket_name or time.strftime("%m-%y"), "%s/%s" % (job_id, name)
        with open(image_location, "rb") as picture:
            kind = "image/" + extension.lstrip(".")
            client.put_object(Bucket=bucket, Key=key, Body=picture.read(), ContentType=kind)
        place = _signed(client, bucket, key)
    if results_list is not None:
        results_list[result_index] = place
    return place


def files(job_id: str, file_list: List[str]) -> List[Any]:
    """Upload several pictures at once, and return their addresses in order."""
    places: List[Any] = [None] * len(file_list)
    threads = [
        threading.Thread(target=upload_image, args=(job_id, path, index, places))
        for index, path in enumerate(file_list)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return places


def bucket_upload(job_id: str, file_list: List[str], bucket_creds: Dict[str, str]) -> List[str]:
    """Upload files to a bucket of the client's own. Raises ImportError without boto3."""
    client, _ = get_boto_client(bucket_creds)
    if client is None:
        raise ImportError("boto3 is required for S3 upload functionality. Install with: pip install boto3")
    places = []
    for path in file_list:
        key = "%s/%s" % (job_id, path)
        with open(path, "rb") as content:
            client.put_object(Bucket=str(bucket_creds["bucketName"]), Key=key, Body=content)
        places.append("%s/%s/%s" % (bucket_creds["endpointUrl"], bucket_creds["bucketName"], key))
    return places


def upload_file_to_bucket(
    file_name: str,
    file_location: str,
    bucket_creds: Optional[Dict[str, str]] = None,
    bucket_name: Optional[str] = None,
    prefix: Optional[str] = None,
    extra_args: Optional[Dict[str, Any]] = None,
) -> str:
    """Upload a file, and return its signed address."""
    client, transfer = get_boto_client(bucket_creds)
    if client is None:
        return _save_beside(file_name, "local_upload", source=file_location)
    bucket, key = bucket_name or time.strftime("%m-%y"), "%s/%s" % (prefix, file_name) if prefix else file_name
    more = {"ExtraArgs": extra_args} if extra_args else {}
    client.upload_file(Filename=file_location, Bucket=bucket, Key=key, Config=transfer, **more)
    return _signed(client, bucket, key)


def upload_in_memory_object(
    file_name: str,
    file_data: bytes,
    bucket_creds: Optional[Dict[str, str]] = None,
    bucket_name: Optional[str] = None,
    prefix: Optional[str] = None,
) -> str:
    """Upload bytes, and return their signed address."""
    client, transfer = get_boto_client(bucket_creds)
    if client is None:
        return _save_beside(file_name, "local_upload", data=file_data)
    bucket, key = bucket_name or time.strftime("%m-%y"), "%s/%s" % (prefix, file_name) if prefix else file_name
    client.upload_fileobj(io.BytesIO(file_data), bucket, key, Config=transfer)
    return _signed(client, bucket, key)


def _signed(client: Any, bucket: str, key: str) -> str:
    parameters = {"Bucket": bucket, "Key": key}
    return str(client.generate_presigned_url("get_object", Params=parameters, ExpiresIn=WEEK))


def _save_beside(name: str, folder: str, source: str = "", data: bytes = b"") -> str:
    """Save a file in a folder of the working directory, and return its path there. Raises ValueError for a name that
    leads elsewhere: scripts take names from their clients."""
    if name.startswith("/") or ".." in name.split("/"):
        raise ValueError("the name %r leads out of the folder %s" % (name, folder))
    logger.warning("no bucket is named: BUCKET_ENDPOINT_URL is not set; saving to the folder %r", folder)
    path = "%s/%s" % (folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if source:
        shutil.copyfile(source, path)
    else:
        with open(path, "wb") as target:
            target.write(data)
    return path
