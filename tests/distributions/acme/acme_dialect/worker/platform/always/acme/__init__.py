"""`acme`, as scripts import it."""

MARKED = []


class Refusal(Exception):
    """A question the script does not take."""

    status = 422


def answers(function):
    """Mark the function that answers questions."""
    MARKED.append(function)
    return function
