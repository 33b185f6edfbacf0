"""The process that workers are made from.

It loads the work once, then forks: what it loaded (Arrow, compiled kernels, vocabularies) is in memory once for all
workers. It is a fresh interpreter, so that no thread or lock of the parent is inherited and the parent's program
is not imported again. Afterwards it only waits: for a worker's end, to tell its signal, and for the parent's end,
to end all workers, whatever they are doing.
"""

import gc
import os
import pickle
import signal
import traceback
from multiprocessing.connection import wait

from penstock.data.workers.arena import map_arena
from penstock.data.workers.channel import Channel
from penstock.data.workers.messages import Ended, NotLoaded, Setup, Started
from penstock.data.workers.process import Work, serve

CHECK_SECONDS = 1.0
"""How often to look whether the parent lives, for the case that somebody else holds its end of the connection."""


def main(control: int) -> None:
    """Run the template; `control` is the descriptor of its connection with the parent."""
    # Ctrl-C and a polite end are the parent's to answer: it still needs its workers to finish a step and save.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    parent_pid = os.getppid()
    connection = Channel(control)
    try:
        setup: Setup = connection.recv()
        work = _load(setup, connection)
        if work is not None:
            pids = _fork_workers(work, setup, connection)
            connection.send(Started(pids))
            _watch(connection, set(pids), parent_pid)
    except (EOFError, OSError):
        return


def _load(setup: Setup, connection: Channel) -> Work | None:
    try:
        # Written by the parent a moment ago, never by a file.
        work: Work = pickle.loads(setup.work)  # noqa: S301
        if work.warm is not None:
            work.warm()
    except Exception as error:  # told to the parent, which raises it
        connection.send(NotLoaded(f"{type(error).__name__}: {error}", traceback.format_exc()))
        return None
    gc.collect()
    # A collection would write to every object, and so copy every page that workers share.
    gc.freeze()
    return work


def _fork_workers(work: Work, setup: Setup, control: Channel) -> tuple[int, ...]:
    pids = []
    for number in range(len(setup.connections)):
        pid = os.fork()
        if pid == 0:
            _be_worker(number, work, setup, control)
        pids.append(pid)
    for descriptor in (*setup.connections, *setup.stack_files):
        os.close(descriptor)
    return tuple(pids)


def _be_worker(number: int, work: Work, setup: Setup, control: Channel) -> None:
    """Never returns: the template's frames are not a worker's to go on with."""
    exit_code = 1
    try:
        control.close()
        # A connection ends when its last holder lets go: each worker holds its own alone.
        for other, descriptor in enumerate(setup.connections):
            if other != number:
                os.close(descriptor)
        connection = Channel(setup.connections[number])
        serve(work, connection, map_arena(setup.arena, setup.arena_bytes), setup.stack_files[number])
        exit_code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(exit_code)


def _watch(connection: Channel, pids: set[int], parent_pid: int) -> None:
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    try:
        while os.getppid() == parent_pid:
            _tell_ended(connection, pids)
            ready = wait([connection, woken], CHECK_SECONDS)
            if woken in ready:
                os.read(woken, 512)
            if connection in ready:
                # The parent says nothing more: this is the end of its end.
                return
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        for pid in pids:
            os.waitpid(pid, 0)


def _tell_ended(connection: Channel, pids: set[int]) -> None:
    while pids:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        pids.discard(pid)
        connection.send(Ended(pid, os.waitstatus_to_exitcode(status)))
