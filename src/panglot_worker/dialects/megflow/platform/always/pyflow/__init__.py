"""The first name of `megflow`."""

from megflow import *  # noqa: F403
from megflow import __version__  # noqa: F401
