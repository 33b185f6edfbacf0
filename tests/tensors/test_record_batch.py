import pyarrow as pa
import pytest
import torch
import torch.multiprocessing

from penstock.tensors.batch import RecordBatchTensor


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
