"""The bytes there are: the machine's, or the container's where that has fewer."""

import psutil
import pytest

from penstock.config.sizes import GIB, MIB
from penstock.runtime import limits
from penstock.runtime.limits import default_limit, limit_of, memory_of_machine
from penstock.runtime.sections import MemorySection

MACHINE = psutil.virtual_memory().total


@pytest.fixture
def cgroup(tmp_path):
    """Writes the files of a container's limits and gives their paths."""

    def write(*texts):
        files = tuple(tmp_path / f"limit_{index}" for index in range(len(texts)))
        for file, text in zip(files, texts, strict=True):
            file.write_text(text)
        return files

    return write


def test_a_container_with_fewer_bytes_than_the_machine_decides(cgroup):
    assert memory_of_machine(cgroup(f"{64 * MIB}\n")) == 64 * MIB


@pytest.mark.parametrize("text", ["max\n", "", "9223372036854771712\n"])
def test_a_container_without_a_limit_of_its_own_has_the_machine(cgroup, text):
    assert memory_of_machine(cgroup(text)) == MACHINE


def test_the_smallest_of_several_limits_counts(cgroup):
    assert memory_of_machine(cgroup(f"{64 * MIB}", f"{32 * MIB}")) == 32 * MIB
    assert memory_of_machine(cgroup(f"{32 * MIB}", "max")) == 32 * MIB


def test_files_that_are_not_there_say_nothing(tmp_path):
    assert memory_of_machine((tmp_path / "absent",)) == MACHINE


def test_the_default_is_60_of_100_parts_in_whole_bytes(monkeypatch):
    monkeypatch.setattr(limits, "memory_of_machine", lambda: 1001)

    assert default_limit() == 600


def test_the_limit_of_the_run_file_or_sixty_percent_of_the_machine():
    assert limit_of(MemorySection(limit="1GiB")) == GIB
    assert limit_of(MemorySection()) == memory_of_machine() * 60 // 100
