import pytest
import torch.distributed as dist

from penstock.config.errors import ConfigError
from penstock.distributed.groups import process_group
from penstock.runtime.collectives import OneProcess
from penstock.runtime.world import World


def test_one_process_needs_no_port_and_leaves_nothing_open():
    with process_group(World()) as collectives:
        assert dist.get_world_size() == 1
        assert isinstance(collectives, OneProcess)

    assert not dist.is_initialized()


def test_the_group_is_closed_when_the_run_fails():
    with pytest.raises(ZeroDivisionError), process_group(World()):
        raise ZeroDivisionError

    assert not dist.is_initialized()


def test_a_group_that_is_open_already_is_used_and_left_open():
    with process_group(World()):
        with process_group(World()):
            pass
        assert dist.is_initialized()


def test_a_group_of_another_size_is_refused():
    with process_group(World()), pytest.raises(ConfigError) as error, process_group(World(0, 2)):
        pass

    assert str(error.value) == "this run has 2 ranks, but a group of 1 is open already"


def test_a_missing_address_is_one_line(monkeypatch):
    monkeypatch.delenv("MASTER_ADDR", raising=False)

    with pytest.raises(ConfigError) as error, process_group(World(1, 2)):
        pass

    assert str(error.value).startswith("rank 1 cannot join the others: ")
    assert "MASTER_ADDR" in str(error.value)
    assert "\n" not in str(error.value)


def test_peers_that_never_come_are_one_line(monkeypatch):
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", "0")

    with pytest.raises(ConfigError) as error, process_group(World(0, 2), timeout_seconds=0.2):
        pass

    assert str(error.value).startswith("rank 0 cannot join the others: ")
    assert "\n" not in str(error.value)
