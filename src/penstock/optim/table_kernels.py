"""The kernels behind the sharded tables of a model: what looks rows up, and updates them in the backward pass."""

from collections.abc import Iterator

from fbgemm_gpu.split_table_batched_embeddings_ops_training import SplitTableBatchedEmbeddingBagsCodegen
from torch import nn


def table_kernels(model: nn.Module) -> Iterator[tuple[SplitTableBatchedEmbeddingBagsCodegen, list[str]]]:
    """The kernels of all sharded collections with the names of their tables; torchrec does not list them as modules."""
    for module in model.modules():
        for lookup in getattr(module, "_lookups", ()):
            for kernel in getattr(lookup, "module", lookup)._emb_modules:
                yield kernel.emb_module, [table.name for table in kernel.config.embedding_tables]
