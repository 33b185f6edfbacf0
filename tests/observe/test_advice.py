"""What is said to runs that wait for their data, and to those that get worse by training on."""

from dataclasses import replace

import pytest

from penstock.config.sizes import GIB, MIB
from penstock.observe.advice import DataPathFacts, advise, advise_on_quality

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


def evaluations(rows=100_000, **curves):
    """One each epoch of 10 steps; `log_loss` is a metric, `binary_cross_entropy` a loss."""
    records = []
    for index, values in enumerate(zip(*curves.values(), strict=True), start=1):
        found = dict(zip(curves, values, strict=True))
        losses = {name: found.pop(name) for name in list(found) if name.startswith("binary_cross_entropy")}
        records.append({"step": 10 * index, "epoch": index, "rows": rows, "metrics": found, "losses": losses})
    return records


WORSE_PROBABILITIES = (
    "auc rose from 0.7400 to 0.7500 while binary_cross_entropy worsened from 0.4900 (step 10) to 0.5100: the order "
    "gets better, the probabilities get worse; where those count, a lower learning rate, or "
    "train_config.early_stopping: {metric: binary_cross_entropy, patience: 2}"
)
BEST_AT_FIRST = (
    "auc was best at the first evaluation: 0.7500 at step 10, 0.7300 at step 30; train_config.num_epochs: 1, "
    "a lower learning rate, or train_config.early_stopping: {metric: auc, patience: 2}"
)
QUALITY = {
    "order up, probabilities down": (
        evaluations(auc=[0.74, 0.745, 0.75], binary_cross_entropy=[0.49, 0.50, 0.51]),
        WORSE_PROBABILITIES,
    ),
    "the same of a tower": (
        evaluations(auc_buy=[0.74, 0.745, 0.75], binary_cross_entropy_buy=[0.49, 0.50, 0.51]),
        WORSE_PROBABILITIES.replace("auc", "auc_buy").replace("entropy", "entropy_buy"),
    ),
    "best at the first evaluation": (evaluations(auc=[0.75, 0.74, 0.73]), BEST_AT_FIRST),
    "a loss that is best at the first evaluation": (
        evaluations(binary_cross_entropy=[0.49, 0.50, 0.51]),
        BEST_AT_FIRST.replace("auc", "binary_cross_entropy")
        .replace("0.7500", "0.4900")
        .replace("0.7300", "0.5100"),
    ),
    "best long before the end": (
        evaluations(auc=[0.74, 0.75, 0.74, 0.73]),
        BEST_AT_FIRST.replace("the first evaluation", "evaluation 2 of 4")
        .replace("step 30", "step 40")
        .replace("step 10", "step 20")
        .replace("epochs: 1", "epochs: 2"),
    ),
    "best shortly before the end": (evaluations(auc=[0.73, 0.74, 0.75, 0.735]), None),
    "two evaluations, clearly": (
        evaluations(auc=[0.75, 0.70]),
        BEST_AT_FIRST.replace("0.7300 at step 30", "0.7000 at step 20"),
    ),
    "two evaluations": (evaluations(auc=[0.75, 0.735]), None),
    "one evaluation": (evaluations(auc=[0.75]), None),
    "all gets better": (evaluations(auc=[0.73, 0.74, 0.75], binary_cross_entropy=[0.51, 0.50, 0.49]), None),
    "no more than noise": (
        evaluations(auc=[0.75, 0.749, 0.747], binary_cross_entropy=[0.5, 0.5, 0.501]),
        None,
    ),
    "few rows": (evaluations(rows=1000, auc=[0.75, 0.74, 0.73]), None),
    "better again": (evaluations(auc=[0.75, 0.72, 0.76]), None),
    "nobody knows which way is better": (evaluations(brier=[0.2, 0.3, 0.4]), None),
    "undefined at first": (evaluations(auc=[None, 0.74, 0.73]), None),
    "another tower": (
        evaluations(auc_click=[0.74, 0.745, 0.75], binary_cross_entropy_buy=[0.50, 0.49, 0.495]),
        None,
    ),
}


@pytest.mark.parametrize(("records", "text"), QUALITY.values(), ids=QUALITY.keys())
def test_what_gets_worse_by_training_on(records, text):
    advice = advise_on_quality(records)

    assert (None if advice is None else str(advice)) == text
