"""Files in tasks."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.config.sizes import KIB, MIB
from penstock.prep.preparing.tasks import make_tasks
from penstock.readers.files import DataFile


def files_of(sizes: list[int]) -> list[DataFile]:
    return [DataFile(f"game_{index}", size) for index, size in enumerate(sizes)]


def test_small_files_share_a_task_and_a_large_one_has_its_own():
    tasks = make_tasks(files_of([10 * KIB, 20 * KIB, 500 * MIB, 30 * KIB]))

    assert [[file.name for file in task.files] for task in tasks] == [
        ["game_0", "game_1"],
        ["game_2"],
        ["game_3"],
    ]


def test_names_bear_the_number_of_the_task():
    [task] = make_tasks(files_of([1]))

    assert (task.name, task.batch_name(7, ".batch")) == ("task_00000", "batch_00000_00007.batch")


def test_many_files_make_a_few_hundred_tasks():
    assert 250 <= len(make_tasks(files_of([MIB] * 10_000))) <= 400


@given(st.lists(st.integers(0, 100 * MIB), max_size=50))
def test_every_file_is_in_one_task_in_order(sizes: list[int]):
    files = files_of(sizes)
    tasks = make_tasks(files)

    assert [file for task in tasks for file in task.files] == files
    assert [task.number for task in tasks] == list(range(len(tasks)))
    assert all(task.files for task in tasks)
