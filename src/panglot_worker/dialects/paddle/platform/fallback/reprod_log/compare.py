"""Differences between values by name, and what counts as none."""

import numpy as np

from reprod_log.utils import np2paddle, np2torch, to_numpy

METHODS = {"mean": np.mean, "min": np.min, "max": np.max}


def check_data(data1, data2):
    """Raises ValueError when one has a name that the other has not."""
    for first, second in ((data1, data2), (data2, data1)):
        missing = [key for key in first if key not in second]
        if missing:
            raise ValueError("only one of the two has %s" % ", ".join(map(str, missing)))


def compute_diff(data1, data2):
    """The absolute differences by name. Two matrices of which one is the other turned over are turned first.

    Raises ValueError for values of different shapes: that is no small difference.
    """
    check_data(data1, data2)
    return {key: _difference(key, data1[key], data2[key]) for key in data1}


def _difference(key, mine, theirs):
    if isinstance(mine, dict) and isinstance(theirs, dict):
        return compute_diff(mine, theirs)
    if isinstance(mine, (list, tuple)) and isinstance(theirs, (list, tuple)):
        return compute_diff(dict(enumerate(mine)), dict(enumerate(theirs)))
    mine, theirs = to_numpy(mine), to_numpy(theirs)
    if mine.shape != theirs.shape and mine.ndim == theirs.ndim == 2 and mine.T.shape == theirs.shape:
        theirs = theirs.T
    if mine.shape != theirs.shape:
        raise ValueError("%s has the shapes %s and %s" % (key, mine.shape, theirs.shape))
    if mine.dtype.kind in "biuf" and theirs.dtype.kind in "biuf":
        return np.abs(mine.astype("f8") - theirs.astype("f8"))
    if mine.dtype.kind == "c" or theirs.dtype.kind == "c":
        return np.abs(mine - theirs)
    return (mine != theirs).astype("f8")


def check_print_diff(diff_dict, diff_method="mean", diff_threshold=1e-6, print_func=print, indent=""):
    """Print each difference by one method, by several, or by "all"; whether all are within the threshold.

    NaN is never within it. An empty array has no difference.
    """
    methods = list(METHODS) if diff_method == "all" else [diff_method] if isinstance(diff_method, str) else diff_method
    unknown = [method for method in methods if method not in METHODS]
    if unknown:
        raise ValueError("there is no method %s; use %s or all" % (unknown[0], ", ".join(METHODS)))
    passed = True
    for key, value in diff_dict.items():
        if isinstance(value, dict):
            print_func("%s%s:" % (indent, key))
            passed &= check_print_diff(value, methods, diff_threshold, print_func, indent + "\t")
            continue
        print_func("%s%s: " % (indent, key))
        for method in methods:
            difference = float(METHODS[method](value)) if np.size(value) else 0.0
            within = difference <= diff_threshold
            passed &= within
            print_func("%s\t%s diff: check passed: %s, value: %s" % (indent, method, within, difference))
    return bool(passed)


def compare_forward(torch_model, paddle_model, input_dict, diff_threshold=1e-6, diff_method="mean"):
    """Run both models on the same inputs, print the difference of their outputs; whether it is small enough."""
    torch_model.eval()
    paddle_model.eval()
    first = _outputs(torch_model(**np2torch(input_dict)))
    second = _outputs(paddle_model(**np2paddle(input_dict)))
    return check_print_diff(compute_diff(first, second), diff_method, diff_threshold)


def compare_loss_and_backward(  # noqa: PLR0913
    torch_model, paddle_model, torch_loss_func, paddle_loss_func, input_dict, lr=1e-3, steps=10,
    diff_threshold=1e-6, diff_method="mean",
):  # fmt: skip
    """Train both models for some steps on the same inputs, print the difference of each loss; whether all are small."""
    import paddle
    import torch

    first = torch.optim.SGD(torch_model.parameters(), lr=lr)
    second = paddle.optimizer.SGD(lr, parameters=paddle_model.parameters())
    passed = True
    for step in range(steps):
        torch_loss = torch_loss_func(torch_model(**np2torch(input_dict)))
        paddle_loss = paddle_loss_func(paddle_model(**np2paddle(input_dict)))
        difference = compute_diff({"step %d loss" % step: torch_loss}, {"step %d loss" % step: paddle_loss})
        passed &= check_print_diff(difference, diff_method, diff_threshold)
        torch_loss.backward()
        first.step()
        first.zero_grad()
        paddle_loss.backward()
        second.step()
        second.clear_grad()
    return bool(passed)


def _outputs(output):
    if isinstance(output, dict):
        return output
    return dict(enumerate(output)) if isinstance(output, (list, tuple)) else {"output": output}
