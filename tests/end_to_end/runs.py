"""Running training in the background, and comparing what runs left behind."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

import psutil

from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.end_to_end.conftest import Workplace


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

    def is_reached() -> bool:
        has_ended = process.poll() is not None
        lines = whole_lines(log.read_text()) if log.exists() else []
        reached = any(json.loads(line)["step"] >= step for line in lines)
        assert reached or not has_ended, process.communicate()
        return reached

    wait_until(is_reached)


def wait_until_stopped(process: "subprocess.Popen[str]") -> None:
    """Wait until a process has stopped itself with SIGSTOP."""

    def is_stopped() -> bool:
        assert process.poll() is None, process.communicate()
        return psutil.Process(process.pid).status() == psutil.STATUS_STOPPED

    wait_until(is_stopped)


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
