import pytest
import torch

from penstock.distributed.groups import process_group
from penstock.runtime.world import World


@pytest.fixture(autouse=True)
def one_thread():
    """Small batches are fastest on one thread, and other tests run beside these."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def one_process():
    with process_group(World()):
        yield
