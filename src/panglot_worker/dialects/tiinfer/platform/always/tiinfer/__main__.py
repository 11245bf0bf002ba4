"""`python -m tiinfer` with these files on PYTHONPATH: say what serves instead."""

import sys

sys.exit("python -m tiinfer is not the server here: put `panglot tiinfer` in its place, the options stay the same")
