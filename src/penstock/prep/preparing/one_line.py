"""Errors of others in one line, whatever their texts look like."""


def in_one_line(error: BaseException) -> str:
    """The kind of an error and its text.

    >>> in_one_line(ValueError("one\\n  two"))
    'ValueError: one two'
    """
    return " ".join(f"{type(error).__name__}: {error}".split()).rstrip(": ")
