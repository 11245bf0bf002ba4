"""Sleeps as many seconds as it is asked to."""

import time


def predict(seconds):
    time.sleep(seconds)
    return seconds
