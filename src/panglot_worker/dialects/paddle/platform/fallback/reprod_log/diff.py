"""`ReprodDiffHelper`: two logs compared, and the verdict."""

from reprod_log import utils
from reprod_log.compare import check_data, check_print_diff, compute_diff


class ReprodDiffHelper:
    def __init__(self):
        self.diff_dict = {}

    def load_info(self, path):
        """The arrays of a file by name. Raises FileNotFoundError, and ValueError for what is no such file."""
        return utils.load(path)

    def compare_info(self, info1, info2):
        """Raises ValueError when the names are not the same."""
        check_data(info1, info2)
        self.diff_dict = compute_diff(info1, info2)

    def report(self, diff_method="mean", diff_threshold=1e-6, path="./diff.txt"):
        """Print the differences, into the file too; whether all are within the threshold."""
        logger = utils.init_logger(path)
        try:
            passed = check_print_diff(self.diff_dict, diff_method, diff_threshold, logger.info)
            logger.info("diff check passed" if passed else "diff check failed")
        finally:
            utils.close(logger)
        return passed
