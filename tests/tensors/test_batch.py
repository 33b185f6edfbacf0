from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import torch
import torch.multiprocessing
from torchrec.sparse.jagged_tensor import JaggedTensor, KeyedJaggedTensor, KeyedTensor

from penstock.features.parser import ParsedBatch
from penstock.features.values import SparseColumn
from penstock.tensors.batch import Batch, Position, RecordBatchTensor
from penstock.tensors.loader import pack


def parsed_ids(values, lengths):
    """A parsed batch with one id feature."""
    column = SparseColumn(np.array(values), np.array(lengths, np.int32))
    return ParsedBatch({"a": column}, {}, {}, np.arange(len(lengths)), len(lengths))


@pytest.fixture
def batch():
    """Two rows with a part of every kind."""
    return Batch(
        dense_features={"base": KeyedTensor(["x"], [2], torch.tensor([[1.0, 2.0], [3.0, 4.0]]))},
        sparse_features={
            "base": KeyedJaggedTensor(
                keys=["a", "steps"],
                values=torch.tensor([1, 2, 3, 4, 5, 6, 7, 8]),
                lengths=torch.tensor([2, 0, 3, 3]),
                weights=torch.arange(8.0),
            )
        },
        sequence_mulval_lengths={
            "base": KeyedJaggedTensor(
                keys=["steps"], values=torch.tensor([2, 1, 1, 2]), lengths=torch.tensor([2, 2])
            )
        },
        sequence_dense_features={"s": JaggedTensor(torch.ones(3, 2), lengths=torch.tensor([1, 2]))},
        labels={"click": torch.tensor([1, 0])},
        jagged_labels={"buys": JaggedTensor(torch.tensor([1.0, 0.0, 1.0]), lengths=torch.tensor([2, 1]))},
        reserves=RecordBatchTensor(pa.record_batch({"id": ["p", "q"]})),
        tile_size=2,
        sample_weights={"w": torch.tensor([0.5, 2.0])},
        additional_infos={"info": torch.tensor([9])},
    )


def test_flat_names(batch):
    flat = {name: tensor.tolist() for name, tensor in batch.to_dict().items()}

    assert flat == {
        "x.values": [[1.0, 2.0], [3.0, 4.0]],
        "a.values": [1, 2],
        "a.lengths": [2, 0],
        "a.weights": [0.0, 1.0],
        "steps.values": [3, 4, 5, 6, 7, 8],
        "steps.weights": [2.0, 3.0, 4.0, 5.0, 6.0, 7.0],
        "steps.key_lengths": [2, 1, 1, 2],
        "steps.lengths": [2, 2],
        "s.values": [[1.0, 1.0]] * 3,
        "s.lengths": [1, 2],
        "click": [1, 0],
        "buys.values": [1.0, 0.0, 1.0],
        "buys.lengths": [2, 1],
        "w": [0.5, 2.0],
        "info": [9],
        "batch_size": 2,
    }


def test_moving_keeps_what_is_no_tensor(batch):
    position = Position(first=7, num_rows=2, file_paths=("a.parquet",))
    moved = replace(batch, position=position, dummy=True).to(torch.device("meta"))

    assert (moved.position, moved.dummy, moved.tile_size) == (position, True, 2)
    assert moved.reserves is batch.reserves


def test_a_moved_batch_knows_its_sizes_without_looking_at_the_device():
    moved = pack(parsed_ids([1, 2, 3], [2, 1])).to(torch.device("meta"))

    ids = moved.sparse_features["base"]
    assert (ids.keys(), ids.stride(), ids.length_per_key()) == (["a"], 2, [3])
    assert moved.num_rows == 2


def test_rows_and_bytes(batch):
    assert batch.num_rows == 2
    assert batch.nbytes == sum(
        [
            16,  # x
            64 + 32 + 32,  # values, lengths, weights of a and steps
            32 + 16,  # counts of steps
            24 + 16,  # s
            16 + 8 + 8,  # click, w, info
            12 + 16,  # buys
            batch.reserves.nbytes,
        ]
    )
    assert Batch().num_rows == 0


def sample():
    return pa.record_batch(
        {
            "id": pa.array(["a", None, "c"]),
            "tags": pa.array([[1, 2], None, []]),
            "kind": pa.array(["x", "y", "x"]).dictionary_encode(),
        }
    )


def test_a_record_batch_comes_back_as_it_was():
    batch = sample().replace_schema_metadata({"made": "here"})

    assert RecordBatchTensor(batch).get().equals(batch, check_metadata=True)
    assert RecordBatchTensor(batch.slice(1, 1)).get().equals(batch.slice(1, 1))


def test_the_columns_are_views_of_the_storage_and_keep_it_alive():
    holder = RecordBatchTensor(sample())
    begin, end = holder.data.data_ptr(), holder.data.data_ptr() + holder.data.nbytes

    batch = holder.get()
    del holder

    assert begin <= batch.column("id").buffers()[2].address < end
    assert batch.equals(sample())


def _answer(queue, answers):
    batch = queue.get().get()
    answers.put(batch.column("id").to_pylist())


@pytest.mark.slow
def test_it_travels_to_another_process():
    context = torch.multiprocessing.get_context("spawn")
    queue, answers = context.Queue(), context.Queue()
    process = context.Process(target=_answer, args=(queue, answers))
    process.start()
    queue.put(RecordBatchTensor(sample()))

    assert answers.get(timeout=300) == ["a", None, "c"]
    process.join()
