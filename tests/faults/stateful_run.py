"""A run in which everything that can have a state has one, and its training in a process that is killed on the way."""

import json
import multiprocessing
import os
import signal
import sys
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Lock, Timer
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

import penstock

MODEL_DIR = "run"
HUGE = 1e30
"""As a label of a squared error: its square is more than float32 holds, so that the loss is infinite."""

COMPUTED = ("event", "step", "epoch", "rows", "loss", "learning_rate", "train_metrics", "skipped_batches")
"""Keys of log.jsonl that speak of what was computed, not of what a clock or the system measured."""

RUN = {
    "train_input_path": "train-*.parquet",
    "eval_input_path": "eval.parquet",
    "model_dir": MODEL_DIR,
    "data_config": {
        "batch_size": 64,
        "label_fields": ["click", "move", "watch"],
        "shuffle": True,
        "shuffle_buffer": "1MiB",
    },
    "feature_configs": [
        {
            "id_feature": {
                "feature_name": "user",
                "expression": "user:user",
                "num_buckets": 300,
                "embedding_dim": 4,
            }
        },
        {
            "id_feature": {
                "feature_name": "item",
                "expression": "item:item",
                "num_buckets": 80,
                "embedding_dim": 4,
            }
        },
        {"raw_feature": {"feature_name": "price", "expression": "item:price"}},
    ],
    "model_config": {
        "feature_groups": [
            {"group_name": "all", "group_type": "DEEP", "feature_names": ["user", "item", "price"]}
        ],
        "use_pareto_loss_weight": True,
        "mmoe": {
            "num_expert": 2,
            "expert_mlp": {"hidden_units": [8], "dropout_ratio": [0.1], "use_bn": True},
            "gate_mlp": {"hidden_units": [4]},
            "task_towers": [
                {
                    "tower_name": "click",
                    "label_name": "click",
                    "losses": [{"binary_cross_entropy": {}}],
                    "metrics": [{"auc": {}}, {"grouped_auc": {"grouping_key": "user"}}],
                    "train_metrics": [
                        {"auc": {"thresholds": 50}, "decay_rate": 0.8, "decay_step": 3},
                        {"log_loss": {}, "decay_rate": 0.5, "decay_step": 4},
                    ],
                    "pareto_min_loss_weight": 0.3,
                },
                {
                    "tower_name": "move",
                    "label_name": "move",
                    "num_class": 3,
                    "mask_name": "allowed",
                    "losses": [{"softmax_cross_entropy": {}}],
                    "metrics": [{"accuracy": {}}],
                    "train_metrics": [{"accuracy": {}, "decay_rate": 0.9, "decay_step": 2}],
                    "pareto_min_loss_weight": 0.1,
                },
                {
                    "tower_name": "watch",
                    "label_name": "watch",
                    "losses": [{"l2_loss": {}}],
                    "metrics": [{"xauc": {}}],
                    "train_metrics": [{"xauc": {}, "decay_rate": 0.7, "decay_step": 5}],
                    "pareto_min_loss_weight": 0.1,
                },
            ],
        },
    },
    "train_config": {
        "num_epochs": 12,
        "save_checkpoints_steps": 10,
        "eval_steps": 7,
        "keep_checkpoint_max": 3,
        "log_step_count_steps": 3,
        "gradient_accumulation_steps": 2,
        "grad_clipping": {"clipping_type": "norm", "max_gradient": 0.5},
        "on_nonfinite": "skip",
        "early_stopping": {"metric": "auc_click", "patience": 4, "min_delta": 0.002},
        "sparse_optimizer": {
            "adam_optimizer": {"lr": 0.02},
            "exponential_decay_learning_rate": {"decay_size": 20, "decay_factor": 0.9, "warmup_size": 5},
        },
        "dense_optimizer": {
            "adam_optimizer": {"lr": 0.01},
            "reduce_on_plateau_learning_rate": {"metric": "auc_click", "patience": 0, "factor": 0.5},
            "ema": {"decay": 0.9},
            "part_optimizers": [
                {
                    "regex_pattern": ".*bias",
                    "rmsprop_optimizer": {"lr": 0.005},
                    "cosine_annealing_warm_restarts_learning_rate": {"T_0": 4, "T_mult": 2},
                }
            ],
        },
    },
}


class Remembering:
    """A callback that remembers all it was told, and interferes: it lowers rates and asks for checkpoints."""

    def __init__(self) -> None:
        self.heard: list[list[Any]] = []

    def on_log(self, step: int, metrics: dict[str, float], control: Any) -> None:
        """Keep what does not depend on the clock."""
        told = {name: value for name, value in metrics.items() if name == "loss" or name.startswith("auc")}
        self.heard.append(["log", step, told])
        if step == 24:
            control.set_learning_rate(0.001, "sparse")

    def on_eval(self, step: int, metrics: dict[str, float], control: Any) -> None:
        """Ask for a checkpoint in the middle of nowhere."""
        self.heard.append(["eval", step, metrics])
        if step % 4 == 0:
            control.save()

    def on_save(self, step: int, metrics: dict[str, float], control: Any) -> None:
        """Keep the step, and of which evaluation it was told."""
        self.heard.append(["save", step, metrics])

    def state_dict(self) -> dict[str, Any]:
        """All of it."""
        return {"heard": self.heard}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Remember again."""
        self.heard = state["heard"]


def write_data(folder: Path) -> None:
    """Two files to train on, with a few rows whose loss is not finite, and one to evaluate on."""
    generator = np.random.default_rng(0)
    for name, num_rows in (("train-0", 1_500), ("train-1", 1_300), ("eval", 900)):
        user, item = generator.integers(0, 300, num_rows), generator.integers(0, 80, num_rows)
        allowed = np.ones((num_rows, 3), np.int8)
        allowed[np.arange(num_rows), (item + 1) % 3] = generator.integers(0, 2, num_rows)
        chance = 1 / (1 + np.exp(-np.sin(user) - np.cos(item)))
        watch = (user % 7 + item % 5).astype(np.float32)
        if name == "train-0":
            watch[[100, 101]] = HUGE
        columns = {
            "user": user,
            "item": item,
            "price": generator.random(num_rows).astype(np.float32),
            "click": (generator.random(num_rows) < chance).astype(np.int64),
            "move": item % 3,
            "watch": watch,
            "allowed": pa.FixedSizeListArray.from_arrays(pa.array(allowed.reshape(-1)), 3),
        }
        pq.write_table(pa.table(columns), folder / f"{name}.parquet", row_group_size=400)
    (folder / "run.yaml").write_text(yaml.safe_dump(RUN, sort_keys=False))


@dataclass(frozen=True)
class Kill:
    """When a training ends itself by SIGKILL: right before an operation on a file, or some time after it."""

    at_operation: int
    after_seconds: float = 0.0

    def happen(self) -> None:
        """The end of this process, now or while it goes on."""
        if self.after_seconds:
            Timer(self.after_seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()
        else:
            os.kill(os.getpid(), signal.SIGKILL)


class Files:
    """Counts what this process does with files below a folder, and ends it when it is told to.

    An audit hook is called before a file is opened, made, renamed or removed. SIGKILL then leaves things as
    a power cut would: nothing is flushed, closed or tidied up.
    """

    EVENTS = frozenset({"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.listdir", "os.scandir"})

    def __init__(self, folder: Path, kill: "Kill | None") -> None:
        self.seen: list[str] = []
        self._folder, self._kill = str(folder), kill
        self._lock = Lock()
        sys.addaudithook(self)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Called for everything; only files below the folder are looked at."""
        if event not in self.EVENTS or not arguments or not isinstance(arguments[0], str | os.PathLike):
            return
        path = os.path.abspath(os.fspath(arguments[0]))
        if not str(path).startswith(self._folder):
            return
        with self._lock:
            self.seen.append(f"{event} {str(path).removeprefix(self._folder)}")
            if self._kill is not None and self._kill.at_operation == len(self.seen):
                self._kill.happen()


def train_in(folder: Path, resume: bool, kill: Kill | None, say: Connection) -> None:
    """Train as a program of one's own would, and tell every operation on files, where one lives so long."""
    import torch

    torch.set_num_threads(1)
    os.chdir(folder)
    files = Files(folder, kill)
    penstock.train(penstock.load_run("run.yaml"), resume=resume, callbacks=[Remembering()])
    say.send(list(files.seen))


CONTEXT = multiprocessing.get_context("forkserver")
# A fork server of these tests alone: torch in the one of the whole process would be in the workers of other tests too.
SERVER = forkserver.ForkServer()
SERVER.set_forkserver_preload(["penstock.run.train", "tests.faults.stateful_run"])


def train(folder: Path, resume: bool = False, kill: Kill | None = None) -> list[str] | None:
    """Train in a process of its own; gives every operation on files in its order, None where it was killed."""
    hear, say = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=train_in, args=(folder, resume, kill, say))
    with mock.patch.object(forkserver, "connect_to_new_process", SERVER.connect_to_new_process):
        process.start()
    say.close()
    try:
        seen: list[str] | None = hear.recv()
    except EOFError:
        seen = None
    process.join()
    assert process.exitcode in ((-signal.SIGKILL,) if seen is None else (0, -signal.SIGKILL))
    return seen


def traces(folder: Path) -> dict[str, Any]:
    """What a run leaves: checkpoints byte by byte, logged numbers, evaluations, and the mark at its best step."""
    run = folder / MODEL_DIR
    checkpoints = {
        str(path.relative_to(run)): path.read_bytes()
        for path in sorted((run / "checkpoints").rglob("*"))
        if path.is_file() and path.name != "manifest.json"
    }
    steps = [
        {key: value for key, value in record.items() if key in COMPUTED}
        for record in lines(run / "log.jsonl")
        if "loss" in record or record.get("event") == "skipped"
    ]
    evaluations = [
        {key: value for key, value in record.items() if key != "seconds"}
        for record in lines(run / "eval_result.jsonl")
    ]
    aside = {path.name: path.read_bytes() for path in sorted((run / "nonfinite").iterdir())}
    best = json.loads((run / "best.json").read_text())
    return {
        "checkpoints": checkpoints,
        "steps": steps,
        "evaluations": evaluations,
        "aside": aside,
        "best": best,
    }


def lines(path: Path) -> list[dict[str, Any]]:
    """The records of a journal."""
    return [json.loads(line) for line in path.read_text().splitlines()]
