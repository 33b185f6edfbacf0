"""Progress lines: every N units, at most once a second, the end always."""

import io

from penstock.runtime.progress import PlainLines, Progress


class Clock:
    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return self.seconds


def run(steps, every, seconds_per_step):
    stream, clock = io.StringIO(), Clock()
    with Progress(PlainLines("train", "step", stream), total=steps, every=every, clock=clock) as progress:
        for _ in range(steps):
            clock.seconds += seconds_per_step
            progress.advance(fields=lambda: {"loss": "0.5"})
    return stream.getvalue().splitlines()


def test_a_line_every_so_many_steps():
    assert run(steps=4, every=2, seconds_per_step=10) == [
        "train: step 2/4  loss 0.5",
        "train: step 4/4  loss 0.5",
    ]


def test_never_more_than_one_line_a_second_but_always_the_last():
    assert run(steps=1000, every=1, seconds_per_step=0.0015) == [
        "train: step 667/1,000  loss 0.5",
        "train: step 1,000/1,000  loss 0.5",
    ]


def test_no_total_is_fine():
    stream = io.StringIO()
    with Progress(PlainLines("read", "rows", stream)) as progress:
        progress.advance(5)

    assert stream.getvalue() == "read: rows 5\n"
