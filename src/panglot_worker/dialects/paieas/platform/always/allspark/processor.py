"""The base class of processors."""

from allspark import settings


class BaseProcessor:
    """What a service of PAI-EAS derives from: `initialize` once, `process` for every request."""

    # Attributes of the class, because constructors of scripts may not call this one.
    worker_threads = 5
    worker_processes = 1
    endpoint = None

    def __init__(self, worker_threads=5, worker_processes=1, endpoint=None, io_threads=4, **options):
        self.worker_threads = worker_threads
        self.worker_processes = worker_processes
        self.endpoint = endpoint
        self.io_threads = io_threads
        self.options = options

    def initialize(self):
        """Load the model; called once in every process, before the first request."""

    def pre_process(self, data):
        return data

    # The platform's own sample spells it so.
    pre_proccess = pre_process

    def post_process(self, data):
        return data

    def process(self, data):
        """Answer a request, given its body as bytes: the bytes of the answer, and a status (0 and 200 are success)."""
        raise NotImplementedError("define process(self, data) in the class of your processor")

    def get_model_path(self):
        """The folder of the model, as the service's configuration names it."""
        return settings.model_path

    def run(self):
        """Serve. Nothing after this runs, as on the platform, where it blocks for ever."""
        try:
            from panglot_worker.scripts import as_main
        except ImportError:
            # The script was started by hand: show that it loads.
            self.initialize()
            print("%s is initialized; `panglot serve` serves it" % type(self).__name__)
            return
        as_main.hand_over(self)
