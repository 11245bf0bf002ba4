"""`AutoLogger`: times the stages of inference and prints the report block."""

import logging
import os
import sys

from auto_log.device import SubprocessGetMem, get_infer_gpuid
from auto_log.env import get_env_info
from auto_log.times import KEYS, Times

FORMAT, DATE = "[%(asctime)s] %(name)s %(levelname)s: %(message)s", "%Y/%m/%d %H:%M:%S"
API_VERSION = "1.0"
CONFIG_KEYS = (
    "runtime_device",
    "ir_optim",
    "enable_memory_optim",
    "enable_tensorrt",
    "enable_mkldnn",
    "cpu_math_library_num_threads",
)


class AutoLogger:
    """See `print_help`."""

    def __init__(  # noqa: PLR0913
        self,
        model_name,
        model_precision="fp32",
        batch_size=1,
        data_shape="dynamic",
        save_path=None,
        inference_config=None,
        pids=None,
        process_name=None,
        gpu_ids=None,
        time_keys=KEYS,
        warmup=0,
        logger=None,
        **kwargs,
    ):
        if kwargs:
            raise TypeError("AutoLogger takes no argument %s" % ", ".join(sorted(kwargs)))
        self.model_name = model_name
        self.precision = model_precision
        self.batch_size = batch_size
        self.data_shape = data_shape
        self.save_path = save_path
        self.config = inference_config
        self.process_name = process_name
        self.pid = _first(pids) if pids is not None else os.getpid()
        self.gpu_ids = get_infer_gpuid() if gpu_ids == "auto" else _first(gpu_ids)
        self.logger = logger if logger is not None else self.init_logger()
        self.config_status = self.parse_config(inference_config)
        self.times = Times(keys=time_keys, warmup=warmup)
        self.memory = None
        self.start_subprocess_get_mem()

    def init_logger(self, name="root", log_level=logging.DEBUG):
        """A logger of this object's own, so that no line is printed twice; to the file `save_path` too, if given."""
        logger = logging.Logger(name, log_level)
        handlers = [logging.StreamHandler(sys.stdout)]
        if self.save_path:
            os.makedirs(os.path.dirname(os.path.abspath(self.save_path)), exist_ok=True)
            handlers.append(logging.FileHandler(self.save_path, mode="a"))
        for handler in handlers:
            handler.setFormatter(logging.Formatter(FORMAT, DATE))
            logger.addHandler(handler)
        return logger

    # The report

    def parse_config(self, config):
        """The switches of a Paddle Config, or of a dict; None for what is not known."""
        if config is None:
            return dict.fromkeys(CONFIG_KEYS)
        if isinstance(config, dict):
            self.precision = config.get("precision", self.precision)
            return {key: config.get(key) for key in CONFIG_KEYS}
        return {
            "runtime_device": "gpu" if config.use_gpu() else "cpu",
            "ir_optim": config.ir_optim(),
            "enable_memory_optim": _memory_optim(config),
            "enable_tensorrt": config.tensorrt_engine_enabled(),
            "enable_mkldnn": config.mkldnn_enabled(),
            "cpu_math_library_num_threads": config.cpu_math_library_num_threads(),
        }

    def get_paddle_info(self):
        try:
            import paddle
        except ImportError:
            return {"paddle_version": None, "paddle_commit": None}
        commit = getattr(paddle, "__git_commit__", None) or getattr(paddle.version, "commit", None)
        return {"paddle_version": paddle.__version__, "paddle_commit": commit}

    def start_subprocess_get_mem(self):
        self.memory = SubprocessGetMem(self.pid, self.gpu_ids)
        self.memory.start()

    def end_subprocess_get_mem(self):
        """The most memory seen so far: MB of the process, MB and utilisation of the card."""
        return self.memory.end()

    # The report

    def report(self, identifier=None):
        """Print the block. The process goes on."""
        tag = " [%s]" % identifier if identifier else ""
        for line in self._lines():
            self.logger.info("%s%s" % (tag, line) if line.startswith(" ") else line)

    def _lines(self):
        yield "\n"
        yield "---------------------- Env info ----------------------"
        yield from _fields(get_env_info())
        yield "---------------------- Paddle info ----------------------"
        yield from _fields(dict(self.get_paddle_info(), log_api_version=API_VERSION))
        yield "----------------------- Conf info -----------------------"
        yield from _fields(self.config_status)
        yield "----------------------- Model info ----------------------"
        yield from _fields({"model_name": self.model_name, "precision": self.precision})
        yield "----------------------- Data info -----------------------"
        yield from _fields(
            {"batch_size": self.batch_size, "input_shape": self.data_shape, "data_num": self.times.count}
        )
        yield "----------------------- Perf info -----------------------"
        seen = {name: _rounded(value) for name, value in self.end_subprocess_get_mem().items()}
        yield " cpu_rss(MB): %(cpu_rss)s, gpu_rss(MB): %(gpu_rss)s, gpu_util: %(gpu_util)s%%" % seen
        spent = self.times.value(mode="sum")
        yield " total time spent(s): %s" % _rounded(sum(spent.values()))
        means = ((key, self.times.value(key, "mean")) for key in self.times.keys)
        yield " " + ", ".join(
            "%s(ms): %s" % (key, None if mean is None else _rounded(mean * 1000)) for key, mean in means
        )

    def print_help(self):
        print(
            "AutoLogger(model_name, inference_config=config) times what a script does with a model:\n"
            "  autolog.times.start()   before an input\n"
            "  autolog.times.stamp()   after preprocess, after inference, after postprocess\n"
            "  autolog.times.end()     after the input\n"
            "  autolog.report()        prints the block"
        )


def _first(value):
    return value[0] if isinstance(value, (list, tuple)) and value else value


def _fields(values):
    return (" %s: %s" % (name, value) for name, value in values.items())


def _rounded(value):
    return None if value is None else round(value, 4)


def _memory_optim(config):
    """Paddle has no question for this switch; its table of options shows it."""
    for line in str(config.summary()).splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 2 and cells[0] == "memory_optim":
            return cells[1] == "true"
    return None
