"""Options of loading, and of the measures that are taken on predictions."""

from penstock.tensors.sections.loading import InputTile, LoadingSection

__all__ = ["InputTile", "LoadingSection"]
