"""What is in a checkpoint and in a run."""

from pathlib import Path

from penstock.checkpoint import CheckpointStore
from penstock.pipeline.inspection.report import Inspection
from penstock.pipeline.model_dir import ModelDir


def inspect_checkpoint(path: Path) -> Inspection:
    """What a checkpoint holds, after its checksums were verified."""
    checkpoint = CheckpointStore(path.parent).open(path)
    table = [
        {"tensor": name, "shape": list(info.shape), "type": info.dtype}
        for name, info in sorted(checkpoint.tensors.items())
    ]
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    facts = {"step": checkpoint.step, "bytes_on_disk": size, "checksums": "right"}
    return Inspection("checkpoint", facts, "tensors", table)


def inspect_run(path: Path) -> Inspection:
    """How far a run is, and how good."""
    folder = ModelDir(path)
    store = CheckpointStore(folder.checkpoints)
    logged = folder.log.read()
    facts = {
        "steps_logged": max((record["step"] for record in logged if "step" in record), default=0),
        "checkpoints": ", ".join(f"step-{step}" for step in store.steps()) or "none",
    }
    table = [
        {"step": record["step"], "epoch": record["epoch"], **record["metrics"]}
        for record in folder.evaluations.read()
    ]
    return Inspection("run", facts, "evaluations", table)
