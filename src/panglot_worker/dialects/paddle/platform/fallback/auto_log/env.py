"""What the machine is: its system, CUDA, cuDNN and driver; None for what it has not."""

import platform
import re
import shutil
import subprocess

PATIENCE = 10


def said(*command):
    """The output of a command; empty when there is none of that name, or when it fails or hangs."""
    if shutil.which(command[0]) is None:
        return ""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=PATIENCE, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", "replace")


def get_env_info():
    return {
        "OS_version": system(),
        "CUDA_version": cuda(),
        "CUDNN_version": cudnn(),
        "drivier_version": driver(),
    }


def system():
    try:
        with open("/etc/os-release") as file:
            release = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', file.read(), re.MULTILINE))
        return "%s %s" % (release["NAME"].partition(" ")[0], release["VERSION_ID"])
    except (OSError, KeyError):
        return "%s %s" % (platform.system(), platform.release())


def cuda():
    match = re.search(r"\bV(\d+(?:\.\d+)+)", said("nvcc", "--version"))
    return match.group(1) if match else _of_paddle("cuda")


def cudnn():
    return _of_paddle("cudnn")


def _of_paddle(what):
    """What the installed Paddle was built for; None for a build without it."""
    try:
        import paddle

        version = getattr(paddle.version, what)()
    except (ImportError, AttributeError):
        return None
    return None if version in ("False", False, "", None, "None") else str(version)


def driver():
    lines = said("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader").split()
    return lines[0] if lines else None
