"""reprod_log as scripts import it: values saved by name, and compared with those of another run.

Where the environment has the published package, that one wins. The files are the same: a pickled dict of arrays in a
.npy file. Only arrays and plain values are read back, from any file.
"""

from reprod_log.compare import compare_forward, compare_loss_and_backward, compute_diff
from reprod_log.diff import ReprodDiffHelper
from reprod_log.log import ReprodLogger

__all__ = ["ReprodDiffHelper", "ReprodLogger", "compare_forward", "compare_loss_and_backward", "compute_diff"]
