"""For the tests alone: an environment without tf-keras."""

import sys


class Hide:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] == "tf_keras":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Hide)
