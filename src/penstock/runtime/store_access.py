"""How this machine reaches object stores.

Arrow finds keys by itself (environment, ~/.aws, the instance's role); where the store is, it must be told.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class StoreAccess:
    """Where S3 is, as the usual variables of its own tools say; None: they do not."""

    endpoint_url: str | None = None
    region: str | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """The more special name first; an empty variable says nothing."""
        endpoint_url = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
        region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
        return cls(endpoint_url or None, region or None)
