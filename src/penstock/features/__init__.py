"""Arrow columns -> ids and numbers.

A feature reads columns of a record batch and gives a SparseColumn (values, lengths, weights) or a
DenseColumn. What a column holds and how it is split depends on the input mode: FG_NONE, already encoded;
FG_NORMAL, raw values. The Parser runs all features over a batch, adds labels and sample weights, checks
ranges, and names file and row of a bad value. Columns of numbers are views of Arrow's memory; strings go
through the kernels of kernels.py in one pass.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.features.build import FEATURE_TYPES, build_features, feature_names
    from penstock.features.feature import Column, DenseColumn, Feature, SparseColumn, TableSpec
    from penstock.features.parser import ParsedBatch, Parser

__all__ = [
    "FEATURE_TYPES",
    "Column",
    "DenseColumn",
    "Feature",
    "ParsedBatch",
    "Parser",
    "SparseColumn",
    "TableSpec",
    "build_features",
    "feature_names",
]

# Reading a run file imports penstock.features.sections, and must not load Arrow and NumPy with it.
_MODULES = {
    "FEATURE_TYPES": "build",
    "build_features": "build",
    "feature_names": "build",
    "Column": "feature",
    "DenseColumn": "feature",
    "SparseColumn": "feature",
    "Feature": "feature",
    "TableSpec": "feature",
    "ParsedBatch": "parser",
    "Parser": "parser",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'penstock.features' has no attribute '{name}'")
    return getattr(import_module(f"penstock.features.{_MODULES[name]}"), name)
