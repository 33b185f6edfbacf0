"""What the step advisor says to runs that wait for their data."""

from dataclasses import replace

import pytest

from penstock.config.sizes import GIB, MIB
from penstock.observe.advice import DataPathFacts, advise, as_record

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
NOT_AHEAD = {"reader": 32 * MIB}

CASES = {
    "parsing, no worker yet": (
        PARSING,
        (
            "waiting 62% of the time: parsing is the bottleneck; "
            "data_config.num_workers: 2 would take about 230MiB more"
        ),
    ),
    "parsing, and the memory is not there": (
        replace(PARSING, free_bytes=100 * MIB),
        (
            "waiting 62% of the time: parsing is the bottleneck; data_config.num_workers: 2 would take about 230MiB "
            "more, which needs memory.limit raised by 130MiB"
        ),
    ),
    "parsing, with one worker: only the second one costs": (
        replace(PARSING, num_workers=1),
        (
            "waiting 62% of the time: parsing is the bottleneck; "
            "data_config.num_workers: 2 would take about 115MiB more"
        ),
    ),
    "parsing, on every core": (
        replace(PARSING, num_workers=4),
        (
            "waiting 62% of the time: parsing is the bottleneck; "
            "all cores parse already: give the run more of them, or fewer and simpler features"
        ),
    ),
    "parsing, hardly longer than reading": (
        replace(PARSING, reading_seconds=40.0),
        (
            "waiting 62% of the time: parsing is the bottleneck; worker processes would not help; "
            "columns of numbers and lists instead of text parse fastest"
        ),
    ),
    "reading, everything given": (
        READING,
        (
            "waiting 62% of the time: reading is the bottleneck; "
            "`penstock inspect` says what is wrong with the files, `penstock rewrite` puts it right"
        ),
    ),
    "reading text": (
        replace(READING, dataset_type="CsvDataset", share_bytes={"reader": 8 * MIB}),
        (
            "waiting 62% of the time: reading is the bottleneck; CSV files as Parquet (`penstock rewrite`, then "
            "train_input_path: what it wrote) would take about 24MiB more"
        ),
    ),
    "reading, with a large shuffle": (
        replace(READING, share_bytes=SHUFFLED),
        (
            "waiting 62% of the time: reading and shuffling are the bottleneck; mix the files once with "
            "`penstock rewrite --shuffle`, then data_config.shuffle_buffer: 16MiB would free about 240MiB"
        ),
    ),
    "reading, with no room to read ahead": (
        replace(READING, share_bytes=NOT_AHEAD),
        (
            "waiting 62% of the time: reading is the bottleneck; nothing is read ahead for lack of memory: "
            "memory.limit raised by 64MiB would take about 64MiB more"
        ),
    ),
    "small batches, made in no time": (
        replace(
            PARSING,
            batch_rows=256,
            batch_bytes=64 * 1024,
            reading_seconds=1,
            parsing_seconds=3,
            computing_seconds=2,
        ),
        (
            "waiting 62% of the time: batches of 256 rows are too small for the work that each one costs; "
            "data_config.batch_size: 1024 would take about 120.2MiB more"
        ),
    ),
    "small batches, whose rows take the time": (
        replace(PARSING, batch_rows=1024),
        (
            "waiting 62% of the time: parsing is the bottleneck; "
            "data_config.num_workers: 2 would take about 230MiB more"
        ),
    ),
    "small batches, and a core is left": (
        replace(PARSING, batch_rows=1024, num_workers=3),
        (
            "waiting 62% of the time: parsing is the bottleneck; "
            "data_config.num_workers: 4 would take about 115MiB more"
        ),
    ),
    "small batches, and every core parses": (
        replace(PARSING, batch_rows=1024, num_workers=4),
        (
            "waiting 62% of the time: batches of 1,024 rows are too small for the work that each one costs; "
            "data_config.batch_size: 4096 would take about 121.5MiB more"
        ),
    ),
    "bursts": (
        replace(PARSING, reading_seconds=5.0, parsing_seconds=10.0, waiting_share=0.25),
        (
            "waiting 25% of the time: data come fast enough on the whole, but in bursts; "
            "data_config.prefetch: 128MiB would take about 64MiB more"
        ),
    ),
}


@pytest.mark.parametrize(("facts", "said"), CASES.values(), ids=CASES.keys())
def test_what_is_said(facts: DataPathFacts, said: str) -> None:
    assert str(advise(facts)) == said


def test_nothing_is_said_to_a_run_that_hardly_waits() -> None:
    assert advise(replace(PARSING, waiting_share=0.19)) is None
    assert as_record(None) is None


def test_nothing_is_said_before_there_were_enough_steps() -> None:
    assert advise(replace(PARSING, num_steps=49)) is None


def test_the_log_gets_the_text_the_setting_and_the_bytes() -> None:
    advice = advise(PARSING)

    assert advice is not None
    assert as_record(advice) == {
        "text": str(advice),
        "setting": "data_config.num_workers",
        "extra_bytes": 230 * MIB,
    }
