"""What the step advisor says to runs that wait for their data."""

from dataclasses import replace

import pytest

from penstock.config.sizes import GIB, MIB
from penstock.observe.advice import DataPathFacts, advise

PARSING = DataPathFacts(
    num_steps=1000,
    waiting_share=0.62,
    reading_seconds=10.0,
    parsing_seconds=60.0,
    computing_seconds=35.0,
    batch_rows=4096,
    batch_bytes=MIB // 2,
    num_workers=0,
    num_cores=4,
    free_bytes=GIB,
    share_bytes={"step": 40 * MIB, "prefetch": 64 * MIB, "reader": 32 * MIB, "read ahead": 16 * MIB},
)
READING = replace(PARSING, reading_seconds=70.0, parsing_seconds=20.0)
SHUFFLED = {**PARSING.share_bytes, "shuffle": 256 * MIB}
SMALL = replace(PARSING, reading_seconds=1, parsing_seconds=3, computing_seconds=2)

PARSE, READ = "parsing is the bottleneck; ", "reading is the bottleneck; "
WORKERS = "data_config.num_workers"
CASES = {
    "parsing, no worker yet": (PARSING, f"{PARSE}{WORKERS}: 2 would take about 230MiB more"),
    "parsing, and the memory is not there": (
        replace(PARSING, free_bytes=100 * MIB),
        f"{PARSE}{WORKERS}: 2 would take about 230MiB more, which needs memory.limit raised by 130MiB",
    ),
    "parsing, hardly longer than reading": (
        replace(PARSING, reading_seconds=40.0),
        f"{PARSE}worker processes would not help; columns of numbers and lists instead of text parse fastest",
    ),
    "reading, everything given": (
        READING,
        f"{READ}`penstock inspect` says what is wrong with the files, `penstock rewrite` puts it right",
    ),
    "reading, with a large shuffle": (
        replace(READING, share_bytes=SHUFFLED),
        (
            "reading and shuffling are the bottleneck; mix the files once with `penstock rewrite --shuffle`, then "
            "data_config.shuffle_buffer: 16MiB would free about 240MiB"
        ),
    ),
    "small batches, made in no time": (
        replace(SMALL, batch_rows=256, batch_bytes=64 * 1024),
        (
            "batches of 256 rows are too small for the work that each one costs; "
            "data_config.batch_size: 1024 would take about 120.2MiB more"
        ),
    ),
    "bursts": (
        replace(PARSING, reading_seconds=5.0, parsing_seconds=10.0),
        "data come fast enough on the whole, but in bursts; data_config.prefetch: 128MiB would take about 64MiB more",
    ),
}


@pytest.mark.parametrize(("facts", "advice"), CASES.values(), ids=CASES.keys())
def test_what_is_advised(facts: DataPathFacts, advice: str) -> None:
    assert str(advise(facts)) == f"waiting 62% of the time: {advice}"


@pytest.mark.parametrize("facts", [replace(PARSING, waiting_share=0.19), replace(PARSING, num_steps=49)])
def test_nothing_is_said_to_a_run_that_hardly_waits_or_has_hardly_begun(facts: DataPathFacts) -> None:
    assert advise(facts) is None


def test_the_log_gets_the_text_the_setting_and_the_bytes() -> None:
    advice = advise(PARSING)

    assert advice is not None
    record = {"text": str(advice), "setting": "data_config.num_workers", "extra_bytes": 230 * MIB}
    assert advice.record() == record
