"""Raw files of a small game, and a module with functions that extract samples from them.

A line of a file is a decision: what was chosen (0 to 3), then three numbers that the player saw.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.prep.sections import Preprocessing
from penstock.readers.batch_files import load_batch
from penstock.readers.store_schema import StoreManifest

MODULE = '''
import os, signal, threading, time
import numpy as np
import pyarrow as pa

TOUCHED = []
RAISED = {"exit": SystemExit(3), "close": GeneratorExit(), "interrupt": KeyboardInterrupt(),
          "raise": RuntimeError("one\\ntwo")}

def samples(path):
    TOUCHED.append(path)
    with open(path) as lines:
        for line in lines:
            chosen, *seen = line.split()
            if chosen == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            if chosen == "die-once":
                if not os.path.exists(path + ".died"):
                    open(path + ".died", "w").close()
                    os.kill(os.getpid(), signal.SIGKILL)
                chosen = 0
            if chosen == "here":
                open(path + ".here", "w").close()
                continue
            if chosen == "await":
                wait_for(path, *seen)
                chosen, seen = 0, [0.0, 0.0, 0.0]
            if chosen == "abort":
                os.abort()
            if chosen in RAISED:
                raise RAISED[chosen]
            if chosen == "print":
                print("seen", seen)
                chosen = 0
            if chosen == "start-a-thread":
                threading.Thread(target=time.sleep, args=(600,), daemon=bool(int(seen[0]))).start()
                chosen = 0
            if chosen == "wait":
                time.sleep(float(seen[0]))
                chosen, seen = 0, [0.0, 0.0, 0.0]
            if chosen == "eat":
                held = np.ones(int(seen[0]) << 20, np.uint8)
                time.sleep(float(seen[1]))
                chosen, seen = 0, [0.0, 0.0, 0.0]
            if chosen == "eat-with":
                other = meet(path, seen[1])
                held = np.ones(int(seen[0]) << 20, np.uint8)
                outlive(other)
                chosen, seen = 0, [0.0, 0.0, 0.0]
            mask = [0, 0, 0, 0]
            mask[int(chosen) % 4] = 1
            yield {
                "features": [float(value) for value in seen],
                "labels": {"action": int(chosen)},
                "masks": {"action": mask},
                "player": os.path.basename(path)[:6],
            }

def wait_for(path, name, text=""):
    """Wait for a file, named as seen from the folder of this one, that has a text in it."""
    other = os.path.join(os.path.dirname(path), name)
    deadline = time.monotonic() + 300
    while not os.path.exists(other) or text not in open(other).read():
        assert time.monotonic() < deadline, other
        time.sleep(0.01)

def meet(path, name):
    """Wait until some process is, or was, at another file; its id. Both write theirs down before they take memory,
    since one of them may be ended at any moment after that."""
    with open(path + ".new", "w") as process:
        process.write(str(os.getpid()))
    os.rename(path + ".new", path + ".process")
    wait_for(path, name + ".process")
    return int(open(os.path.join(os.path.dirname(path), name + ".process")).read())

def outlive(other):
    """Wait until another process is no more, unless it is this one."""
    deadline = time.monotonic() + 300
    while other != os.getpid() and os.path.exists(f"/proc/{other}"):
        assert time.monotonic() < deadline, other
        time.sleep(0.01)

def arrays(path):
    table = np.loadtxt(path, ndmin=2)
    labels = table[:, 0].astype(int)
    masks = np.eye(4, dtype=np.int8)[labels % 4]
    yield {"strategic_features": table[:, 1:], "labels_action": labels, "masks_action": masks}

def nested(path):
    """All lines at once, in the form of a sample."""
    for item in arrays(path):
        yield {"features": item["strategic_features"], "labels": {"action": item["labels_action"]},
               "masks": {"action": item["masks_action"]}}

def batches(path):
    """The same as Arrow record batches of two rows."""
    for item in arrays(path):
        columns = {name: pa.array(list(values)) for name, values in item.items()}
        yield from pa.table(columns).to_batches(max_chunksize=2)

def url_length(path):
    """Something that is known without opening the file."""
    yield {"features": [len(path)], "labels": {"action": 0}, "masks": {"action": [1]}}

not_a_function = 3
'''


RUN_FILE = """\
preprocessing:
  input_path: raw
  extract: rawgame:samples
  intermediate_dir: batches
  output_dir: store
  batch_size: 4
  parallel: false
"""


def write_module(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the module `rawgame` where Python and workers find it."""
    (folder / "rawgame.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "rawgame", raising=False)


def enter_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make it the current folder, with the module, two raw files, and prep.yaml that has nothing but preprocessing."""
    monkeypatch.chdir(folder)
    write_module(folder, monkeypatch)
    write_games(folder / "raw", [3, 6])
    (folder / "prep.yaml").write_text(RUN_FILE)


def write_games(folder: Path, lengths: Mapping[int, int] | list[int]) -> list[Path]:
    folder.mkdir(exist_ok=True)
    paths = []
    for game, length in enumerate(lengths):
        lines = [f"{row % 4} {game} {row} {game * 1000 + row + 0.5}\n" for row in range(length)]
        paths.append(folder / f"game_{game}.txt")
        paths[-1].write_text("".join(lines))
    return paths


def section(folder: Path, **keys: Any) -> Preprocessing:
    document = {
        "input_path": str(folder / "raw"),
        "extract": "rawgame:samples",
        "intermediate_dir": str(folder / "batches"),
        "output_dir": str(folder / "store"),
        "batch_size": 4,
        "parallel": False,
    }
    return Preprocessing.model_validate({**document, **keys})


def prepared_arrays(folder: Path) -> dict[str, np.ndarray]:
    manifest = StoreManifest.read(folder)
    loaded = [load_batch(folder / batch.name) for batch in manifest.batches]
    return {
        spec.name: np.concatenate([arrays[spec.name] for arrays in loaded]) for spec in manifest.schema.arrays
    }


def content(folder: Path) -> dict[str, bytes]:
    """Every file but the log, which tells times."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "log.jsonl"
    }


def events(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
