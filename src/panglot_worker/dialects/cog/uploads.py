"""Files that a prediction puts out, uploaded where the operator of the server says."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from urllib.parse import quote, urlsplit, urlunsplit

from panglot_worker.dialects.cog import outputs

SECONDS = 15.0


class UploadFailed(outputs.BadFile):
    """A file could not be uploaded: the prediction fails."""


class Uploads:
    """Uploads the files of one prediction, as the platform does: `PUT ADDRESS/NAME`."""

    def __init__(self, address: str, prediction: str) -> None:
        self._address = address.rstrip("/") + "/"
        self._prediction = prediction

    def write(self, content: bytes, name: str) -> str:
        """The address at which the file is now: what `Location` says, without a query. Raises UploadFailed."""
        headers = {"Content-Type": outputs.kind_of(name), "X-Prediction-ID": self._prediction}
        address = self._address + quote(name or "output")
        try:
            # The address is the operator's, and was checked at the start.
            request = urllib.request.Request(address, content, headers, method="PUT")  # noqa: S310
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310
                final = str(answer.headers.get("Location") or answer.geturl())
        except urllib.error.HTTPError as error:
            raise UploadFailed("%s cannot be uploaded: the receiver answers %d" % (name, error.code)) from None
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise UploadFailed("%s cannot be uploaded: %s" % (name, error)) from None
        return urlunsplit(urlsplit(final)._replace(query="", fragment=""))
