"""A custom model and training loop, as in a notebook: bounded memory, live AUC, saved in the middle and resumed.

python examples/library/own_loop.py
"""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch.nn import functional

import penstock
from penstock.metrics import AUC, DecayAUC, TrainMetricWrapper

NUM_ITEMS = 100


def write_clicks(folder: Path, num_rows: int = 20_000) -> None:
    """Clicks on items whose number is like the age of the user, more or less."""
    generator = np.random.default_rng(0)
    age = generator.uniform(0, 1, num_rows).astype(np.float32)
    item = generator.integers(0, NUM_ITEMS, num_rows)
    click = np.abs(age - item / NUM_ITEMS) < generator.uniform(0, 0.5, num_rows)
    table = pa.table({"age": age, "item": item, "click": click.astype(np.float32)})
    pq.write_table(table, folder / "clicks.parquet", row_group_size=2_000)


class ClickModel(torch.nn.Module):
    """An embedding of the item beside the age, and two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.items = torch.nn.Embedding(NUM_ITEMS, 8)
        self.layers = torch.nn.Sequential(torch.nn.Linear(9, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))

    def forward(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        """The logit of a click."""
        logits: torch.Tensor = self.layers(
            torch.cat([self.items(batch["item"]), batch["age"][:, None]], dim=1)
        )
        return logits[:, 0]


class Notebook:
    """What the cells of a notebook would hold: data, model, optimizer and a live AUC, each with a state."""

    def __init__(self, folder: Path) -> None:
        torch.manual_seed(0)
        clicks = penstock.read_parquet(str(folder)).memory("64MiB")
        self.batches = clicks.shuffle("128KiB", seed=7).batch(256).epochs(4).to_torch()
        self.model = ClickModel()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)
        self.live_auc = TrainMetricWrapper(DecayAUC(), decay_rate=0.9, decay_step=20)

    def train(self, num_steps: int | None = None) -> None:
        """Train for `num_steps`, or to the end."""
        for step, batch in enumerate(self.batches, start=1):
            logits = self.model(batch)
            loss = functional.binary_cross_entropy_with_logits(logits, batch["click"])
            self.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimizer.step()
            self.live_auc.update(logits.detach().sigmoid(), batch["click"])
            if self.live_auc.num_steps % 100 == 0:
                print(
                    f"step {self.live_auc.num_steps}: loss {loss:.3f}, live AUC {self.live_auc.compute():.3f}"
                )
            if step == num_steps:
                break

    def state(self) -> dict[str, Any]:
        """What a resumed loop needs: tensors, numbers and strings alone."""
        live_auc = {name: torch.as_tensor(array) for name, array in self.live_auc.state_dict().items()}
        parts: dict[str, Any] = {"batches": self.batches, "model": self.model, "optimizer": self.optimizer}
        return {"live_auc": live_auc} | {name: part.state_dict() for name, part in parts.items()}

    def load(self, state: dict[str, Any]) -> None:
        """Resume from `state`."""
        for name, saved in state.items():
            getattr(self, name).load_state_dict(saved)


def main() -> None:
    """Train in one go, and in two with a file between them: the same model."""
    with tempfile.TemporaryDirectory() as name:
        folder, file = Path(name) / "clicks", Path(name) / "state.pt"
        folder.mkdir()
        write_clicks(folder)
        first, second, whole = Notebook(folder), Notebook(folder), Notebook(folder)

        first.train(num_steps=150)
        torch.save(first.state(), file)
        second.load(torch.load(file, weights_only=True))
        second.train()

        print("in one go:")
        whole.train()
        pairs = zip(second.model.parameters(), whole.model.parameters(), strict=True)
        print("equal to the last bit:", all(torch.equal(one, other) for one, other in pairs))

        auc = AUC()
        with torch.no_grad():
            for batch in penstock.read_parquet(str(folder)).memory("64MiB").batch(4096).to_torch():
                auc.update(second.model(batch).sigmoid(), batch["click"])
        print(f"AUC of all rows: {auc.compute():.3f}")


if __name__ == "__main__":
    main()
