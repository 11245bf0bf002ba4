"""A part of the SDK's name space: other parts may be installed, and are found beside this one."""

__path__ = __import__("pkgutil").extend_path(__path__, __name__)
