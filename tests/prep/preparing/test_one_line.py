"""Errors of the user's code as one line."""

from penstock.prep.preparing.one_line import in_one_line


class Speechless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_an_error_in_one_line():
    assert in_one_line(ValueError("one\n\ttwo ")) == "ValueError: one two"
    assert in_one_line(KeyError()) == "KeyError"


def test_an_error_that_cannot_tell_its_text():
    assert in_one_line(Speechless()) == "Speechless, which fails to tell its text"
