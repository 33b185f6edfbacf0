"""Progress lines: every N units, at most once a second, the end always; with the rate and the time left."""

import io

import pytest
from rich.console import Console

from penstock.runtime.progress import Bar, PlainLines, ProgressLogger


class Clock:
    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return self.seconds


def run(steps, every, seconds_per_step, *, total=None, done=0):
    stream, clock = io.StringIO(), Clock()
    display = PlainLines("train", "step", stream)
    with ProgressLogger("train", "step", total, every, done=done, display=display, clock=clock) as progress:
        for _ in range(steps):
            clock.seconds += seconds_per_step
            progress.advance(fields=lambda: {"loss": "0.5"})
    return stream.getvalue().splitlines()


def test_a_line_every_so_many_steps():
    assert run(steps=4, every=2, seconds_per_step=10, total=4) == [
        "train: step 2/4  loss 0.5  steps/s 0.1  left 0:20",
        "train: step 4/4  loss 0.5  steps/s 0.1",
    ]


def test_never_more_than_one_line_a_second_but_always_the_last():
    assert run(steps=1000, every=1, seconds_per_step=0.0015, total=1000) == [
        "train: step 667/1,000  loss 0.5  steps/s 667  left 0:01",
        "train: step 1,000/1,000  loss 0.5  steps/s 667",
    ]


def test_what_was_done_before_is_no_part_of_the_rate():
    assert run(steps=2, every=1, seconds_per_step=2, total=110, done=100) == [
        "train: step 101/110  loss 0.5  steps/s 0.5  left 0:18",
        "train: step 102/110  loss 0.5  steps/s 0.5  left 0:16",
    ]


FIELDS = {"samples": "11,626", "samples/s": "2,722", "memory": "198.3MiB", "files/s": "5.2", "left": "0:12"}


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        (130, "file 21/1,094  samples 11,626  samples/s 2,722  memory 198.3MiB  files/s 5.2  left 0:12"),
        (50, "file 21/1,094  left 0:12"),
    ],
)
def test_a_narrow_terminal_shows_what_matters_most(columns, text):
    stream = io.StringIO()
    bar = Bar(
        "preparing", "file", Console(file=stream, width=columns, force_terminal=True, color_system=None)
    )
    bar.show(21, 1094, FIELDS)
    bar.close()
    line = [line for line in stream.getvalue().splitlines() if "preparing" in line][-1].rstrip()
    line = line[line.index("preparing") :]

    assert line.endswith(f" {text}")
    assert len(line) <= columns
    assert "…" not in line


def test_a_plain_line_keeps_to_80_columns():
    stream = io.StringIO()
    PlainLines("preparing", "file", stream).show(21, 1094, FIELDS)

    assert stream.getvalue() == ("preparing: file 21/1,094  samples 11,626  samples/s 2,722  left 0:12\n")
