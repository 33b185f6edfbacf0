"""File systems that are not local disks: connections to object stores, and what their errors mean."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.fs as pa_fs

from penstock.config.errors import DataError
from penstock.config.nearest import hint
from penstock.readers.uris import Uri
from penstock.runtime.store_access import StoreAccess

CONNECT_TIMEOUT_SECONDS = 5.0
SILENCE_TIMEOUT_SECONDS = 10.0
"""A request during which no byte comes for so long is given up."""
MOST_ATTEMPTS = 4
"""Of each request, with growing pauses, when the store cannot be reached or says that it is busy."""
DEFAULT_REGION = "us-east-1"
"""Where a store has an address of its own, the region is only a word in signatures."""

_S3_OPTIONS = {"endpoint_override", "scheme", "region", "anonymous"}
_REASONS = {
    "NO_SUCH_BUCKET": "there is no such bucket",
    "Bucket not found": "there is no such bucket",
    "ACCESS_DENIED": "access is denied; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or ~/.aws/credentials) to "
    "keys that may list and read it",
    "INVALID_ACCESS_KEY_ID": "the store does not know this key; check AWS_ACCESS_KEY_ID",
    "SIGNATURE_DOES_NOT_MATCH": "the store refuses the signature; check AWS_SECRET_ACCESS_KEY and the region",
    "curlCode: 6,": "the name of the store cannot be resolved; check the endpoint (AWS_ENDPOINT_URL or "
    "?endpoint_override=) and the network",
    "curlCode: 7,": "the store cannot be reached; check the endpoint (AWS_ENDPOINT_URL or ?endpoint_override=) and "
    "the network",
    "curlCode: 28,": f"the store does not answer (waited {SILENCE_TIMEOUT_SECONDS:.0f} seconds, {MOST_ATTEMPTS} "
    "times); check the endpoint and the network, then continue with --resume",
}
"""What the errors of S3 and of the network mean to a user."""


def connect(uri: Uri) -> tuple[pa_fs.FileSystem, str]:
    """The file system of a URI, and the path of its key there. Connections are made once and kept."""
    filesystem, root = _connected(uri.root, StoreAccess.from_environment())
    return filesystem, f"{root.rstrip('/')}/{uri.key}" if uri.key else root


@lru_cache(maxsize=32)
def _connected(root: str, access: StoreAccess) -> tuple[pa_fs.FileSystem, str]:
    uri = Uri.parse(root)
    with explained(root):
        if uri.scheme == "s3":
            return pa_fs.S3FileSystem(**_s3_settings(uri, access)), uri.authority
        return pa_fs.FileSystem.from_uri(str(_with_time_limit(uri)))


def _s3_settings(uri: Uri, access: StoreAccess) -> dict[str, Any]:
    """The options of the path, then what the environment says, then what the bucket says of itself."""
    options = uri.options
    for name in options.keys() - _S3_OPTIONS:
        raise DataError(f"{uri}: has the unknown option '{name}'; {hint(name, _S3_OPTIONS)}")
    endpoint = urlsplit(_with_scheme(options.get("endpoint_override") or access.endpoint_url or ""))
    address = f"{endpoint.netloc}{endpoint.path.rstrip('/')}" or None
    region = options.get("region") or access.region
    if region is None:
        region = DEFAULT_REGION if address else pa_fs.resolve_s3_region(uri.authority)
    return {
        "endpoint_override": address,
        "scheme": options.get("scheme") or endpoint.scheme or "https",
        "region": region,
        "anonymous": options.get("anonymous", "false").lower() in ("", "1", "true"),
        "connect_timeout": CONNECT_TIMEOUT_SECONDS,
        "request_timeout": SILENCE_TIMEOUT_SECONDS,
        "retry_strategy": pa_fs.AwsStandardS3RetryStrategy(max_attempts=MOST_ATTEMPTS),
    }


def _with_time_limit(uri: Uri) -> Uri:
    """Google's client tries for a quarter of an hour unless it is told otherwise."""
    if uri.scheme not in ("gs", "gcs") or "retry_limit_seconds" in uri.options:
        return uri
    limit = f"retry_limit_seconds={MOST_ATTEMPTS * SILENCE_TIMEOUT_SECONDS:.0f}"
    return replace(uri, query="&".join(filter(None, [uri.query, limit])))


def _with_scheme(address: str) -> str:
    return address if not address or "://" in address else f"//{address}"


@contextmanager
def explained(path: str) -> Iterator[None]:
    """Turns what Arrow raises over a store into one line that says what to do."""
    try:
        yield
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file") from error
    except PermissionError as error:
        raise DataError(f"{path}: no permission to read this file") from error
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path}: {_reason(str(error))}") from error


def _reason(text: str) -> str:
    known = [reason for mark, reason in _REASONS.items() if mark in text]
    if known:
        return known[0]
    line = (text.splitlines() or ["unknown error"])[0]
    return f"cannot be read: {line.partition(' (Request ID')[0]}"
