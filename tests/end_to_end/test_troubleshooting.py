"""Every entry of docs/troubleshooting.md: what it quotes is what is printed when one runs into it."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.config.errors import PenstockError
from penstock.config.sizes import MIB
from penstock.observe.advice import DataPathFacts, advise
from penstock.run.session import Session
from penstock.runtime.memory import MemoryMonitor
from penstock.runtime.world import OneProcess, World
from tests.cli.conftest import desk, trained_desk, trained_run
from tests.cli.desk import Change, Desk
from tests.data import worker_functions as functions
from tests.end_to_end.wrong_input.test_data_files import FROM_CSV, HEADER
from tests.end_to_end.wrong_input.test_places import WEIGHTS, flip_a_bit
from tests.faults.test_workers import ten_batches

__all__ = ["desk", "trained_desk", "trained_run"]

PAGE = (Path(__file__).parents[2] / "docs" / "troubleshooting.md").read_text()
NOT_ALWAYS_THE_SAME = re.compile(
    r"[\d.]+[KMGT]?i?B\b|worker \d+|pid \d+|checksum \d+|\d+ bytes|\d+%|by -?\d\.\d+|rows \d+ to \d+"
)
NUM_MIXED_ROWS = 60_000

Provoke = Callable[[Desk], str]
"""Does what gives the symptom, and returns everything that is printed."""


def by_command(
    command: str,
    *changes: Change,
    clicks: dict[str, Any] | None = None,
    csv: str = "",
    prepare: Callable[[Path], object] = lambda folder: None,
) -> Provoke:
    """A command, after changes of the run file and of the data."""

    def provoke(desk: Desk) -> str:
        desk.write_run(*changes)
        desk.write_clicks(**clicks or {})
        desk.write("clicks.csv", HEADER + csv)
        prepare(desk.folder)
        done = desk.penstock(*command.split())
        return done.stderr + done.stdout

    return provoke


def more_memory_than_the_limit(_: Desk) -> str:
    with MemoryMonitor(16 * MIB) as monitor:
        pass
    session = Session(World(), OneProcess(), monitor)
    return str(session.limit_exceeded("step 2 is saved, continue with --continue_train"))


def waiting_for_parsing(_: Desk) -> str:
    facts = DataPathFacts(
        num_steps=1000,
        waiting_share=0.6,
        reading_seconds=5.0,
        parsing_seconds=40.0,
        computing_seconds=20.0,
        batch_rows=8192,
        batch_bytes=2 * MIB,
        num_workers=0,
        num_cores=8,
        free_bytes=4096 * MIB,
        share_bytes={},
    )
    return str(advise(facts))


def killing_a_worker(_: Desk) -> str:
    with ten_batches(functions.kills_itself_late_at_20) as stage, pytest.raises(PenstockError) as caught:
        list(stage)
    return str(caught.value)


def exchanging_two_words(desk: Desk) -> str:
    words = ("num_buckets: 100, embedding_dim: 4}\n  - id_feature: {feature_name: item", "")
    known = 'vocab_list: ["{}", "{}", "3", "4", "5", "6"], embedding_dim: 4}}\n  - id_feature: {{feature_name: item'
    desk.write_run((words[0], known.format(1, 2)))
    assert desk.penstock("train", "run.yaml").exit_code == 0
    desk.write_run((words[0], known.format(2, 1)))
    return desk.penstock("eval", "run.yaml").stderr


def scoring_strings_with_a_model_of_numbers(desk: Desk) -> str:
    hashed = ('"item:item_id", num_buckets: 100', '"item:item_id", hash_bucket_size: 100')
    desk.write_run(hashed)
    assert desk.penstock("train", "run.yaml").exit_code == 0
    desk.write_clicks(item_id=["1.0", "2.0", "3.0", "4.0", "5.0", "6.0"])
    return desk.penstock("eval", "run.yaml").stderr


def sorted_rows(folder: Path) -> None:
    ids, labels = np.arange(NUM_MIXED_ROWS) % 100, np.arange(NUM_MIXED_ROWS) >= NUM_MIXED_ROWS // 2
    table = pa.table({"user_id": ids, "item_id": ids, "price": ids / 10, "click": labels.astype(np.int64)})
    pq.write_table(table, folder / "clicks.parquet", row_group_size=1_000)


SYMPTOMS: dict[str, Provoke] = {
    "The tables do not fit": by_command(
        "train run.yaml", ('user_id", num_buckets: 100', 'user_id", num_buckets: 1000000000')
    ),
    "More memory was taken than allowed": more_memory_than_the_limit,
    "Memory runs out in a step": by_command(
        "train run.yaml",
        ("binary_cross_entropy: {}", "custom_loss: {import_path: 'tests.run.test_failures:terabytes'}"),
    ),
    "The model waits for data": waiting_for_parsing,
    "A worker process was killed": killing_a_worker,
    "The vocabulary was changed": exchanging_two_words,
    "A label is neither 0 nor 1": by_command("train run.yaml", clicks={"click": [0, 1, 2, 1, 0, 1]}),
    "A row has no label": by_command("train run.yaml", clicks={"click": [0, 1, None, 1, 0, 1]}),
    "An id has no row in its table": by_command("train run.yaml", clicks={"user_id": [1, 200, 3, 4, 5, 6]}),
    "A column is of another kind than in training": scoring_strings_with_a_model_of_numbers,
    "The loss is not finite": by_command(
        "train run.yaml",
        ("label_fields: [click]", "label_fields: [click]\n  sample_weight_fields: [weight]"),
        clicks={"weight": [1.0, 3.4e38, 3.4e38, 1.0, 1.0, 1.0]},
    ),
    "A number is too large for FP16": by_command(
        "train run.yaml",
        ("num_epochs: 1", "num_epochs: 1\n  mixed_precision: FP16"),
        clicks={"price": [0.5, 1.5, 70_000.0, 2.5, 3.5, 4.5]},
    ),
    "A metric is undefined": by_command("train run.yaml", clicks={"click": [1] * 6}),
    "A metric reads what the model does not give": by_command(
        "train run.yaml", ("binary_cross_entropy", "l2_loss")
    ),
    "A number of a CSV file is a word": by_command(
        "train run.yaml", *FROM_CSV, csv="1,2,3.5,0\n1,2,cheap,1\n1,2,,1\n"
    ),
    "A row of a CSV file has another number of columns": by_command(
        "train run.yaml", *FROM_CSV, csv="1,2,3.5,0\n1,2,3.5\n1,2,,1\n"
    ),
    "The shuffle mixes little": by_command(
        "train run.yaml",
        ("batch_size: 4", "batch_size: 4000\n  shuffle: true\n  shuffle_buffer: 1MiB"),
        ("eval_input_path: clicks.parquet\n", ""),
        prepare=sorted_rows,
    ),
    "A custom module is not found": by_command(
        "check run.yaml", ("{auc: {}}", '{custom_metric: {import_path: "own_metrics:Brier"}}')
    ),
}

OF_A_TRAINED_RUN: dict[str, Provoke] = {
    "Data files were replaced in the middle of a run": by_command(
        "train run.yaml --continue_train", clicks={"user_id": [1, 2, 3, 4, 5, 7]}
    ),
    "The model is another than in the checkpoint": by_command(
        "eval run.yaml", ('user_id", num_buckets: 100', 'user_id", num_buckets: 50')
    ),
    "A checkpoint is damaged": by_command(
        "eval run.yaml", prepare=lambda folder: flip_a_bit(folder / WEIGHTS)
    ),
}


def entries() -> dict[str, str]:
    """The text of each entry of the page, by its title."""
    titles_and_texts = re.split(r"^### (.*)$", PAGE, flags=re.MULTILINE)[1:]
    return dict(zip(titles_and_texts[::2], titles_and_texts[1::2], strict=True))


def assert_quoted(title: str, printed: str) -> None:
    """The line that the page quotes is among what was printed, but for numbers that differ from run to run."""
    [quoted] = re.findall(r"^```\n(.*?)(?: \.\.\.)?\n```$", entries()[title], re.MULTILINE)
    assert NOT_ALWAYS_THE_SAME.sub("#", quoted) in NOT_ALWAYS_THE_SAME.sub("#", printed), printed


def test_the_page_has_these_entries_and_each_says_what_to_do():
    assert set(entries()) == {*SYMPTOMS, *OF_A_TRAINED_RUN}
    for title, text in entries().items():
        assert all(f"**{word}:**" in text for word in ("Cause", "Change")), title


@pytest.mark.parametrize("title", SYMPTOMS)
def test_symptom(desk, title):
    assert_quoted(title, SYMPTOMS[title](desk))


@pytest.mark.parametrize("title", OF_A_TRAINED_RUN)
def test_symptom_of_a_trained_run(trained_desk, title):
    assert_quoted(title, OF_A_TRAINED_RUN[title](trained_desk))
