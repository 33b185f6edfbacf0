"""Errors of others in one line, whatever their texts look like."""


def in_one_line(error: BaseException) -> str:
    """The kind of an error and its text.

    >>> in_one_line(ValueError("one\\n  two"))
    'ValueError: one two'
    """
    kind = type(error).__name__
    try:
        return " ".join(f"{kind}: {error}".split()).rstrip(": ")
    except Exception:  # the text of an error is code of others too
        return f"{kind}, which fails to tell its text"
