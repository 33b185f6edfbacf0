"""A run's batches for a loop of one's own: on another number of ranks, and what is told of wrong arguments."""

import re
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import penstock
from tests.cli.desk import Desk

PAGE = Path(__file__).parents[2] / "docs" / "distributed.md"
CSV = ("train_input_path: clicks.parquet", "train_input_path: clicks.csv")


def users(batches: object) -> list[int]:
    """The ids of all rows, which tell them apart."""
    return [user for batch in batches for user in batch.sparse_features["base"]["user"].values().tolist()]


def test_the_example_of_the_page_gives_every_row_once(desk: Desk):
    desk.write_run(("batch_size: 4", "batch_size: 1"))
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    [example] = [block for block in blocks if "states=states" in block]
    names: dict[str, Any] = {}

    exec(example, names)

    assert names["num_rows_left"] == 6 - 2


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"world": (0, 2)}, "create_dataloader: world is (0, 2); give a penstock.World(rank, num_ranks)"),
        (
            {"states": {"epoch": 0}},
            (
                "create_dataloader: states is an object of type dict; give a list with what state_dict() gave on "
                "every rank, such as states=[state]"
            ),
        ),
        ({"mode": "training"}, "create_dataloader: mode is 'training'; did you mean 'train'?"),
    ],
    ids=["world", "states", "mode"],
)
def test_what_is_given_wrongly_is_told(desk: Desk, wrong: dict, message: str):
    with pytest.raises(penstock.ConfigError) as told:
        penstock.create_dataloader(penstock.load_run("run.yaml"), **wrong)

    assert str(told.value) == message


def test_a_label_that_samples_made_text_of_names_the_cure_and_the_cure_works(desk: Desk):
    desk.write("clicks.csv", "user_id,item_id,price,click\n1,9,0.5,0\n2,8,1.5,yes\n3,7,2.5,1\n")
    desk.write_run(CSV)
    edits: dict[str, Any] = {"data_config.with_header": True}

    with pytest.raises(penstock.DataError) as told:
        penstock.create_dataloader(penstock.load_run("run.yaml", edits))

    assert str(told.value) == (
        "clicks.csv: column 'click': not all of its values are numbers, so that it was taken for text; declare its "
        "type in data_config.input_fields ({input_name: click, input_type: INT64}): then the first bad row is named, "
        "or with data_config.bad_rows: quarantine all of them are set aside"
    )
    edits["data_config.input_fields"] = [{"input_name": "click", "input_type": "INT64"}]
    with (
        pytest.raises(
            penstock.DataError, match=r"clicks.csv: row 1: column 'click': value 'yes' is not int64"
        ),
        penstock.create_dataloader(penstock.load_run("run.yaml", edits)) as batches,
    ):
        list(batches)
    edits["data_config.bad_rows"] = "quarantine"
    with penstock.create_dataloader(penstock.load_run("run.yaml", edits)) as batches:
        assert sorted(users(batches)) == [1, 3]


@pytest.mark.parametrize(("mode", "sizes"), [("train", [4]), ("eval", [4]), ("predict", [4, 2])])
def test_only_a_prediction_keeps_the_rest_that_is_to_be_dropped(desk: Desk, mode: Any, sizes: list[int]):
    run = penstock.load_run("run.yaml", {"data_config.drop_remainder": True})

    with penstock.create_dataloader(run, mode) as batches:
        assert [batch.num_rows for batch in batches] == sizes


def test_each_loop_is_an_epoch_and_a_loop_that_was_left_goes_on(desk: Desk):
    run = penstock.load_run("run.yaml", {"data_config.shuffle": True})
    with penstock.create_dataloader(run) as batches:
        epochs = [users(batches) for _ in range(3)]
    with penstock.create_dataloader(run) as batches:
        first = users(islice(batches, 1))
        again = [first + users(batches), users(islice(batches, len(batches))), users(batches)]

    assert [sorted(epoch) for epoch in epochs] == [[1, 2, 3, 4, 5, 6]] * 3
    assert epochs[0] != epochs[1] != epochs[2]
    assert again == epochs


def test_a_position_at_the_end_of_an_epoch_goes_on_with_the_next_one(desk: Desk):
    run = penstock.load_run("run.yaml", {"data_config.shuffle": True})
    with penstock.create_dataloader(run) as batches:
        inside = [batches.state_dict() for _ in batches]
        after = batches.state_dict()
        second = users(batches)

    assert (after["epoch"], after["row"]) == (1, 0)
    for state in (inside[-1], after):
        with penstock.create_dataloader(run, states=[state]) as batches:
            assert users(batches) == second


def test_the_length_is_the_batches_of_an_epoch_where_that_is_known(desk: Desk):
    def length(mode: Any = "train", world: penstock.World | None = None, **data: Any) -> int:
        run = penstock.load_run("run.yaml", {f"data_config.{key}": value for key, value in data.items()})
        with penstock.create_dataloader(run, mode, world) as batches:
            assert batches
            return len(batches)

    assert length() == length("eval") == 2
    assert (length(drop_remainder=True), length("predict", drop_remainder=True)) == (1, 2)
    assert length("eval", eval_batch_size=1) == 6
    assert length(world=penstock.World(1, num_ranks=2), batch_size=2) == 2
    with pytest.raises(TypeError, match="batch_cost_size cuts them by cost"):
        length(batch_cost_size=10, sample_cost_field="item_id")


def test_an_epoch_without_rows_ends(desk: Desk):
    run = penstock.load_run("run.yaml")
    with penstock.create_dataloader(run, world=penstock.World(6, num_ranks=7)) as batches:
        assert [users(batches), users(batches)] == [[], []]


@pytest.mark.parametrize(
    ("mode", "sizes"),
    [("train", [1, 2]), ("eval", [1, 2]), ("predict", [1, 1, 2, 2])],
)
def test_batches_are_cut_by_cost_in_every_mode_and_only_a_prediction_keeps_all_rows(
    desk: Desk, mode: Any, sizes: list[int]
):
    desk.write_clicks(cost=[5, 20, 6, 4, 3, 1])
    cost = {"batch_cost_size": 10, "sample_cost_field": "cost", "oversize": "drop", "drop_remainder": True}
    run = penstock.load_run("run.yaml", {f"data_config.{key}": value for key, value in cost.items()})

    with penstock.create_dataloader(run, mode) as batches:
        assert [batch.num_rows for batch in batches] == sizes


def test_the_state_of_a_rank_that_is_missing_is_named(desk: Desk, monkeypatch: pytest.MonkeyPatch):
    run = penstock.load_run("run.yaml")
    with penstock.create_dataloader(run, world=penstock.World(1, 2)) as batches:
        state = batches.state_dict()
    closed: list[str] = []
    monkeypatch.setattr("penstock.run.data.Prefetch.close", lambda _: closed.append("batches"))

    for states, problem in (
        ([state], "missing: shard 0 of 2"),
        ([state, state], "given more than once: shard 1 of 2; missing: shard 0 of 2"),
    ):
        with pytest.raises(penstock.CheckpointError) as told:
            penstock.create_dataloader(run, states=states)
        assert str(told.value) == f"the positions of all shards are needed together, each once; {problem}"
    assert len(closed) == 2


def test_values_are_hidden_in_training_alone(desk: Desk):
    desk.write_clicks(user_id=[1] * 6)
    desk.write_run(
        (
            "num_buckets: 100, embedding_dim: 4}\n  - id",
            "num_buckets: 100, embedding_dim: 4, use_mask: true}\n  - id",
        )
    )
    run = penstock.load_run("run.yaml", {"data_config.sample_mask_prob": 0.5})

    with penstock.create_dataloader(run) as training:
        seen = users(training)
    with penstock.create_dataloader(run) as again:
        assert users(again) == seen
    assert 0 < len(seen) < 6
    with penstock.create_dataloader(run, mode="eval") as held_out:
        assert users(held_out) == [1] * 6


def test_nothing_that_could_be_hidden_is_refused(desk: Desk):
    with pytest.raises(penstock.ConfigError) as told:
        penstock.load_run("run.yaml", {"data_config.sample_mask_prob": 0.5})

    assert (
        str(told.value)
        == "run.yaml: data_config.sample_mask_prob: hides nothing: no feature has use_mask: true"
    )


def test_a_label_may_be_a_list_where_no_loss_reads_it(desk: Desk):
    desk.write_clicks(picks=[[1], [], [2, 3], None, [4], [5]])
    run = penstock.load_run("run.yaml", {"data_config.label_fields": ["click", "picks"]})

    with penstock.create_dataloader(run) as batches:
        first = next(iter(batches)).jagged_labels["picks"]

    assert (first.values().tolist(), first.lengths().tolist()) == ([1, 2, 3], [1, 0, 2, 0])
    with pytest.raises(
        penstock.DataError, match=r"column 'picks': is a list.*; this label is one number in each row"
    ):
        penstock.create_dataloader(penstock.load_run("run.yaml", {"data_config.label_fields": ["picks"]}))
