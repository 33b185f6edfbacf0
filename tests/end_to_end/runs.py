"""Running training in the background, and comparing what runs left behind."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from tests.end_to_end.conftest import Workplace


REACHED_SECONDS = 300
"""For starting Python and the steps before the one that is waited for, on a machine that does much else."""


def start(
    workplace: "Workplace", *words: str, environment: Mapping[str, str] | None = None
) -> "subprocess.Popen[str]":
    """The program, running in the background."""
    return subprocess.Popen(
        [sys.executable, "-m", "penstock", *words],
        cwd=workplace.folder,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_step(process: "subprocess.Popen[str]", workplace: "Workplace", step: int) -> None:
    """Wait until the log of a run has reached a step."""
    log = workplace.folder / "run" / "log.jsonl"
    deadline = time.monotonic() + REACHED_SECONDS
    while time.monotonic() < deadline:
        if log.exists() and any(json.loads(line)["step"] >= step for line in whole_lines(log.read_text())):
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    raise AssertionError(f"step {step} was not reached in {REACHED_SECONDS} s")


def wait_until_stopped(process: "subprocess.Popen[str]") -> None:
    """Wait until a process has stopped itself with SIGSTOP."""
    deadline = time.monotonic() + REACHED_SECONDS
    while psutil.Process(process.pid).status() != psutil.STATUS_STOPPED:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, f"it did not stop in {REACHED_SECONDS} s"
        time.sleep(0.01)


def whole_lines(text: str) -> list[str]:
    """The lines that have been written to their end."""
    return text.split("\n")[:-1]


def parameters(workplace: "Workplace", step: int) -> dict[str, bytes]:
    """Model, optimizers, generator and position of a checkpoint, byte by byte."""
    folder = workplace.folder / "run" / "checkpoints" / f"step-{step}"
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "manifest.json"}


def losses(workplace: "Workplace") -> dict[int, float]:
    """The loss of every logged step."""
    records = [json.loads(line) for line in (workplace.folder / "run" / "log.jsonl").read_text().splitlines()]
    return {record["step"]: record["loss"] for record in records if "loss" in record}


def evaluations(workplace: "Workplace") -> list[tuple[int, dict[str, float]]]:
    """Step and metrics of every evaluation."""
    lines = (workplace.folder / "run" / "eval_result.jsonl").read_text().splitlines()
    return [(record["step"], record["metrics"]) for record in map(json.loads, lines)]
