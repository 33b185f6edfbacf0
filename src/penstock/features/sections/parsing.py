"""The part of data_config about turning columns into features, labels and weights."""

from enum import StrEnum
from typing import Annotated

from pydantic import NonNegativeInt

from penstock.config.section import Later, Legacy, Probability, Section


class FgMode(StrEnum):
    """How the columns of the data become features."""

    FG_NONE = "FG_NONE"
    FG_NORMAL = "FG_NORMAL"
    FG_DAG = "FG_DAG"
    FG_BUCKETIZE = "FG_BUCKETIZE"


class ParsingSection(Section):
    """The part of data_config about turning columns into features, labels and weights."""

    fg_mode: Annotated[FgMode, Later("this fg_mode", values=("FG_DAG", "FG_BUCKETIZE"))] = FgMode.FG_NONE
    """FG_NONE: columns are features already. FG_NORMAL: each feature is made from raw columns on its own.
    FG_DAG: all in one graph. FG_BUCKETIZE: columns are values that still become ids."""

    fg_encoded: Annotated[bool, Legacy("fg_mode")] = True
    """Counts where it is written: true is FG_NONE; false is FG_DAG, or FG_NORMAL with fg_threads 0."""

    fg_encoded_multival_sep: str = "\x03"
    """Between the values of one row, where columns are features already."""

    fg_threads: NonNegativeInt = 1
    """Threads that work on the graph of features."""

    label_fields: list[str] = []
    """Columns with the labels."""

    sample_weight_fields: list[str] = []
    """Columns with the weights of rows."""

    sample_mask_prob: Annotated[Probability, Later("sample_mask_prob")] = 0.0
    """Share of the values of use_mask features that is hidden in training."""

    negative_sample_mask_prob: Annotated[Probability, Later("negative_sample_mask_prob")] = 0.0
    """The same for sampled negatives."""

    force_base_data_group: Annotated[bool, Later("force_base_data_group")] = False
    """Keep all features in one group of rows, whether or not there are negatives."""

    def resolved_fg_mode(self) -> FgMode:
        """The mode that counts: the old fg_encoded wins where it is written."""
        if "fg_encoded" not in self.model_fields_set:
            return self.fg_mode
        if self.fg_encoded:
            return FgMode.FG_NONE
        return FgMode.FG_DAG if self.fg_threads > 0 else FgMode.FG_NORMAL
