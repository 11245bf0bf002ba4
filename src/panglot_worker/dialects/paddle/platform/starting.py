"""Without a server too, `paddle.inference` finds an exported model under either generation's file names."""

import sys
import warnings

from panglot_worker.compat.importing import after_import


def say(text):
    print("panglot: " + text, file=sys.stderr)


def redirect(module):
    from panglot_worker.dialects.paddle.redirect import Redirection, config_class

    module.Config = config_class(module.Config, Redirection(True, say))


warnings.filterwarnings("ignore", message="No ccache found")
after_import("paddle.inference", redirect)
