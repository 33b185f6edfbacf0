"""A store saves, finds and loads checkpoints that are whole, and refuses all others with a reason."""

import errno
import json
import logging
import pickle

import numpy as np
import pytest
import safetensors.torch
import torch

from penstock.checkpoint import CheckpointStore, open_checkpoint
from penstock.checkpoint.manifest import MANIFEST_NAME, from_json, to_json
from penstock.config.errors import CheckpointError


@pytest.fixture
def store(tmp_path):
    return CheckpointStore(tmp_path / "checkpoints")


def tensors(value: float = 1.0) -> dict[str, torch.Tensor]:
    return {
        "model.weight": torch.full((3, 2), value),
        "model.scale": torch.tensor(value, dtype=torch.float64),
        "optimizer.step": torch.tensor(int(value)),
        "generator": torch.arange(5, dtype=torch.uint8),
        "empty": torch.zeros(0, 4, dtype=torch.bfloat16),
        "mask": torch.tensor([True, False]),
        "transposed": torch.arange(6.0).reshape(2, 3).T,
    }


def blank() -> dict[str, torch.Tensor]:
    return {name: torch.zeros_like(tensor) for name, tensor in tensors().items()}


def test_what_was_saved_is_loaded_in_place(store):
    assert (store.steps(), store.latest()) == ([], None)
    store.save(7, tensors(4.0), {"progress": {"step": 7}, "metrics": {"bins": np.arange(3)}})
    loaded = blank()

    checkpoint = store.latest()
    checkpoint.load_tensors(loaded)

    assert (checkpoint.step, checkpoint.manifest.versions["torch"]) == (7, torch.__version__)
    assert checkpoint.tensors.keys() == tensors().keys()
    assert checkpoint.documents["progress"] == {"step": 7}
    np.testing.assert_array_equal(checkpoint.documents["metrics"]["bins"], np.arange(3))
    for name, tensor in tensors(4.0).items():
        assert torch.equal(loaded[name], tensor), name


def test_large_tensors_are_streamed_into_parameters_and_views(store, monkeypatch):
    monkeypatch.setattr("penstock.checkpoint.storage.BLOCK_BYTES", 64)
    table = torch.rand(101, 3)
    store.save(1, {"first": table[:40], "second": table[40:]}, {})
    parameter, target = torch.nn.Parameter(torch.zeros(40, 3)), torch.zeros(101, 3)

    store.open(1).load_tensors({"first": parameter, "second": target[40:]})

    assert torch.equal(parameter, table[:40])
    assert torch.equal(target[40:], table[40:])


def test_files_can_be_read_by_any_safetensors_reader(store):
    path = store.save(1, tensors(4.0), {})

    read = safetensors.torch.load_file(path / "rank-00000.safetensors")

    assert read.keys() == tensors().keys()
    for name, tensor in tensors(4.0).items():
        assert read[name].dtype == tensor.dtype
        assert torch.equal(read[name], tensor), name


@pytest.mark.parametrize(
    "tidy",
    [lambda store: store.save(4, tensors(), {}, protect=[1]), lambda store: store.remove_stale(protect=[1])],
    ids=["by saving", "by continuing"],
)
def test_the_newest_and_the_protected_are_kept_and_leftovers_of_killed_runs_are_removed(store, tidy):
    for step in (1, 2, 3, 4):
        store.save(step, tensors(), {})
    (store.directory / ".step-0.removed").mkdir()
    (store.directory / ".step-5.tmp").mkdir()
    (store.directory / ".step-5.tmp" / "rank-00000.safetensors").write_bytes(b"half")
    assert store.steps() == [1, 2, 3, 4]

    tidy(CheckpointStore(store.directory, keep=2))

    assert sorted(path.name for path in store.directory.iterdir()) == ["step-1", "step-3", "step-4"]


def truncate(path):
    (path / "rank-00000.safetensors").write_bytes((path / "rank-00000.safetensors").read_bytes()[:-1])


def flip_a_bit(path):
    content = bytearray((path / "rank-00000.safetensors").read_bytes())
    content[-1] ^= 1
    (path / "rank-00000.safetensors").write_bytes(content)


def edit_the_manifest(path):
    text = (path / MANIFEST_NAME).read_text()
    (path / MANIFEST_NAME).write_text(text.replace('"step": 2', '"step": 3'))


DAMAGES = {
    "truncated": (truncate, "file 'rank-00000.safetensors' has"),
    "flipped": (flip_a_bit, "file 'rank-00000.safetensors' was changed or damaged after it was written"),
    "document gone": (lambda path: (path / "progress.json").unlink(), "file 'progress.json' is missing"),
    "no manifest": (
        lambda path: (path / MANIFEST_NAME).unlink(),
        "no manifest.json: written by another program",
    ),
    "cut manifest": (lambda path: (path / MANIFEST_NAME).write_text("{"), "manifest.json is damaged"),
    "edited manifest": (edit_the_manifest, "manifest.json is damaged (its checksum differs)"),
}


@pytest.mark.parametrize(("damage", "reason"), DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_checkpoint_is_refused_and_the_one_before_is_used(store, caplog, damage, reason):
    store.save(1, tensors(), {"progress": {}})
    damage(store.save(2, tensors(), {"progress": {}}))

    with pytest.raises(CheckpointError) as error:
        store.open(2)
    with caplog.at_level(logging.WARNING):
        assert store.latest().step == 1

    assert str(error.value).startswith(f"{store.directory / 'step-2'}: {reason}")
    assert reason in caplog.text


def test_a_renamed_checkpoint_opens_by_path_but_not_as_a_step(store, tmp_path):
    store.save(2, tensors(), {}).rename(store.directory / "step-9")

    assert open_checkpoint(store.directory / "step-9").step == 2
    with pytest.raises(CheckpointError, match=r"was written at step 2, then renamed"):
        store.open(9)


class Bomb:
    """Unpickling it would leave a trace."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return (open, (str(self.trace), "w"))


def test_no_pickle_is_ever_read(store, tmp_path):
    trace = tmp_path / "executed"
    path = store.save(1, tensors(), {})
    (path / ".metadata").write_bytes(pickle.dumps(Bomb(trace)))
    foreign = store.directory / "step-2"
    foreign.mkdir()
    (foreign / ".metadata").write_bytes(pickle.dumps(Bomb(trace)))
    (foreign / "__0_0.distcp").write_bytes(pickle.dumps(Bomb(trace)))

    store.latest().load_tensors(blank())
    with pytest.raises(CheckpointError, match="written by another program"):
        store.open(2)

    assert not trace.exists()
    pickle.loads(pickle.dumps(Bomb(trace))).close()  # noqa: S301
    assert trace.exists(), "the bomb works"


def test_names_and_shapes_are_compared_before_anything_is_read(store):
    store.save(1, {"kept": torch.ones(2), "old": torch.ones(1), "table": torch.ones(3, 4)}, {})
    kept = torch.zeros(2)

    with pytest.raises(CheckpointError) as error:
        store.open(1).load_tensors({"kept": kept, "new": torch.zeros(1), "table": torch.zeros(5, 4)})

    assert str(error.value) == (
        f"{store.directory / 'step-1'}: does not fit this model: missing in the checkpoint: new; "
        "only in the checkpoint: old; not alike: table (checkpoint float32 [3, 4], model float32 [5, 4])"
    )
    assert torch.equal(kept, torch.zeros(2))
    difference = store.open(1).load_tensors({"kept": kept, "new": torch.zeros(1)}, strict=False)
    assert torch.equal(kept, torch.ones(2))
    assert (difference.missing, difference.extra) == (("new",), ("old", "table"))


@pytest.mark.parametrize(
    ("tensors", "documents", "message"),
    [
        ({"lr": 0.1}, {}, "'lr' is a float, not a tensor"),
        ({"z": torch.zeros(1, dtype=torch.complex64)}, {}, "'z' has dtype complex64, which cannot be saved"),
        ({}, {"../x": 1}, "'../x' cannot name a document; use letters, digits and '_'"),
        ({}, {"manifest": 1}, "'manifest' cannot name a document; use letters, digits and '_'"),
    ],
)
def test_what_cannot_be_saved_is_refused_and_leaves_nothing(store, tensors, documents, message):
    with pytest.raises(CheckpointError) as error:
        store.save(1, tensors, documents)

    assert str(error.value) == message
    assert store.steps() == []


def test_a_full_disk_is_one_line_and_leaves_the_older_checkpoint(store, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    store.save(1, tensors(), {})
    monkeypatch.setattr("penstock.checkpoint.storage.os.fsync", full)

    with pytest.raises(CheckpointError, match="No space left on device") as caught:
        store.save(2, tensors(), {})

    assert isinstance(caught.value.__cause__, OSError | CheckpointError), "so that --debug shows where"
    assert store.steps() == [1]
    assert store.latest().step == 1


def decoded(text):
    return json.loads(text, object_hook=from_json)


def test_plain_values_bytes_and_numpy_scalars_come_back():
    document = {
        "step": 3,
        "loss": 0.1,
        "files": ["a", b"\x00\xff"],
        "best": None,
        "done": False,
        "big": 2**100,
    }

    assert decoded(json.dumps(to_json(document, "progress"))) == document
    assert to_json([np.float32(0.5), np.int64(3)], "state") == [0.5, 3]


def test_arrays_come_back_bit_for_bit():
    strided, scalar, empty = np.arange(10)[::3], np.array(7, np.uint8), np.zeros((0, 4), np.float32)
    for array in (strided, scalar, empty, np.array([np.nan, np.inf, -0.0]), np.array([["a", "bc"]])):
        back = decoded(json.dumps(to_json({"auc": {"bins": array}}, "metrics")))["auc"]["bins"]
        assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, array.shape, array.tobytes())
        assert back.flags.writeable


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"a": [object()]}, "state.a[0]: a object cannot be saved in a document"),
        ({"a": np.array([None])}, "state.a: a ndarray cannot be saved in a document"),
        ({"a": {3: 1}}, "state.a: key 3 cannot be saved"),
        ({"$array": 1}, "state: key '$array' cannot be saved"),
    ],
)
def test_what_json_cannot_carry_is_refused_by_its_place(document, message):
    with pytest.raises(CheckpointError) as error:
        to_json(document, "state")

    assert str(error.value).startswith(message)


def test_an_object_array_in_a_forged_document_is_refused():
    with pytest.raises(ValueError, match="OBJECT"):
        decoded('{"$array": {"dtype": "|O", "shape": [1], "base64": "AAAAAAAAAAA="}}')
