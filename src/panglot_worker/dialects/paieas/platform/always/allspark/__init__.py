"""What scripts import of Alibaba's SDK for Python processors. The distribution of this name on PyPI is another's."""

from allspark import settings
from allspark.processor import BaseProcessor

__all__ = ["BaseProcessor", "default_properties"]


def default_properties():
    """The options of the server, which a script may set by texts: put("rpc.keepalive", "10000")."""
    return settings.properties
