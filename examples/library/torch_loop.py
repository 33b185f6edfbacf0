"""A small network in plain PyTorch on Parquet files, read inside 64 MiB whatever their size.

The same Dataset feeds a training loop and a DataLoader with workers.

    python examples/library/torch_loop.py
"""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch.utils.data import DataLoader

import penstock

NUM_ITEMS = 100


def write_clicks(folder: Path, num_files: int = 3, rows_per_file: int = 10_000) -> None:
    """Who clicked on which item: users click on items whose number is like their age."""
    generator = np.random.default_rng(0)
    for index in range(num_files):
        age = generator.uniform(0, 1, rows_per_file).astype(np.float32)
        item = generator.integers(0, NUM_ITEMS, rows_per_file)
        click = (np.abs(age - item / NUM_ITEMS) < 0.25).astype(np.float32)
        table = pa.table({"age": age, "item": item, "click": click})
        pq.write_table(table, folder / f"clicks-{index}.parquet", row_group_size=2_000)


class ClickModel(torch.nn.Module):
    """An embedding of the item beside the age, and two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.items = torch.nn.Embedding(NUM_ITEMS, 8)
        self.layers = torch.nn.Sequential(torch.nn.Linear(9, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))

    def forward(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        """The logit of a click."""
        features = torch.cat([self.items(batch["item"]), batch["age"][:, None]], dim=1)
        return self.layers(features)[:, 0]


def train(model: ClickModel, batches: penstock.Dataset) -> None:
    """Three epochs; the order of rows is another one in each."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for batch in batches.epochs(3).prefetch("8MiB").to_torch():
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(batch), batch["click"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def accuracy(model: ClickModel, batches: penstock.Dataset) -> tuple[float, int]:
    """The share of rows predicted right, and their number; two worker processes read half of them each."""
    right = rows = 0
    for batch in DataLoader(batches.to_torch(), batch_size=None, num_workers=2):
        right += int(((model(batch) > 0) == (batch["click"] > 0)).sum())
        rows += len(batch["click"])
    return right / rows, rows


def main() -> None:
    """Train on all rows and print the accuracy."""
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as name:
        write_clicks(Path(name))
        clicks = penstock.read_parquet(name).memory("64MiB")
        print(f"{clicks.num_rows:,} rows of {', '.join(clicks.schema.names)}")

        model = ClickModel()
        train(model, clicks.shuffle("256KiB", seed=7).batch(256))
        share, rows = accuracy(model, clicks.batch(1024))
        print(f"{100 * share:.0f} % of {rows:,} rows are predicted right")


if __name__ == "__main__":
    main()
