"""AutoLog as scripts of the TIPC chain import it: times of the stages, memory, and the report block.

Where the environment has a published AutoLog, that one wins. This one never ends the process, never waits for a sample,
prints each line once, and shows what is true of the run.
"""

from auto_log.autolog import AutoLogger, Times
from auto_log.device import CpuInfo, GpuInfo, GpuInfoV2, MemInfo, SubprocessGetMem, get_infer_gpuid
from auto_log.env import get_env_info

__all__ = [
    "AutoLogger",
    "CpuInfo",
    "GpuInfo",
    "GpuInfoV2",
    "MemInfo",
    "SubprocessGetMem",
    "Times",
    "get_env_info",
    "get_infer_gpuid",
]
