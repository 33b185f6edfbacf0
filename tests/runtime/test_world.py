"""What this process is: rank, cores, packages; and that the first signal is a request, the second stops at once."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from penstock.config.errors import ConfigError
from penstock.runtime.world import World, compute_threads, stop_on_signal, tile_from_environment


def test_from_torchrun():
    environment = {"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "MASTER_ADDR": "localhost"}
    assert World.from_environment(environment) == World(rank=3, num_ranks=8, local_rank=1)


@pytest.mark.parametrize(
    ("environment", "text"),
    [
        ({"RANK": "8", "WORLD_SIZE": "8", "MASTER_ADDR": "x"}, "rank 8 does not fit a world of 8"),
        ({"WORLD_SIZE": "2"}, "MASTER_ADDR is not set; start the ranks with torchrun"),
        ({"RANK": "one"}, "RANK is 'one'; expected a whole number"),
    ],
)
def test_a_wrong_environment_is_refused_in_one_line(environment, text):
    with pytest.raises(ConfigError, match=text):
        World.from_environment(environment)


@pytest.mark.parametrize(
    ("cores", "environment", "threads"),
    [
        (1, {}, 1),
        (16, {}, 15),
        (2, {"OMP_NUM_THREADS": "2"}, 2),
        (4, {"OMP_NUM_THREADS": "many"}, 3),
    ],
)
def test_one_core_is_left_for_the_data_unless_the_user_sets_the_threads(cores, environment, threads):
    assert compute_threads(cores, environment) == threads


@pytest.mark.parametrize(("text", "tile"), [("2", "inputs"), ("3", "embeddings"), ("1", None), ("", None)])
def test_input_tile_of_older_scripts(text, tile):
    assert tile_from_environment({"INPUT_TILE": text}) == tile


def test_another_input_tile_is_refused():
    with pytest.raises(ConfigError, match=r"INPUT_TILE is 'two'; expected 2 \(inputs\) or 3 \(embeddings\)"):
        tile_from_environment({"INPUT_TILE": "two"})


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_asks_to_stop_and_names_the_exit_code(number, exit_code):
    with stop_on_signal() as request:
        os.kill(os.getpid(), number)

        assert request
        assert request.signal_number == number
        assert request.exit_code == exit_code


def test_in_another_thread_no_request_ever_comes():
    seen = []

    def work():
        with stop_on_signal() as request:
            seen.append((bool(request), signal.getsignal(signal.SIGTERM)))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert seen == [(False, before)]


TWO_SIGNALS = """
import os, signal
from penstock.runtime.world import stop_on_signal

try:
    with stop_on_signal():
        os.kill(os.getpid(), signal.SIGINT)
        print("goes on", flush=True)
        os.kill(os.getpid(), signal.SIGTERM)
        print("not reached", flush=True)
finally:
    print("nor is this", flush=True)
"""


def test_the_second_signal_ends_the_process_at_once():
    ended = subprocess.run(
        [sys.executable, "-c", TWO_SIGNALS], capture_output=True, text=True, check=False, timeout=300
    )

    assert (ended.returncode, ended.stdout) == (143, "goes on\n")
