"""The part of data_config about sampling: which candidates join the rows of a batch."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field, NonNegativeInt, PositiveInt

from penstock.config.section import Later, Section, words

NumSample = Annotated[PositiveInt, Field(description="Negatives for a batch.")]
UserTable = Annotated[str, Field(description="Table of users: id, weight.")]
ItemTable = Annotated[str, Field(description="Table of items: id, weight, attributes.")]
PositiveEdges = Annotated[str, Field(description="Table of positive edges: user id, item id, weight.")]
UserId = Annotated[str, Field(description="Column of the data with the user's id.")]


class SamplerOptions(Section):
    """What every sampler says about the table of items."""

    item_id_field: str
    """Column of the data with the item's id."""

    attr_fields: list[str] = []
    """Columns that a sampled item brings, in the order of its attributes."""

    attr_delimiter: str = ":"
    """Between the attributes of an item."""

    field_delimiter: str | None = None
    """Between the columns of a table in CSV."""

    num_eval_sample: NonNegativeInt = 0
    """Negatives in evaluation; 0: as in training."""


class NegativeSampler(SamplerOptions):
    """Items by weight, none that is a positive of the batch."""

    input_path: str
    """Table of items: id, weight, attributes."""

    num_sample: NumSample
    item_id_delim: str = ";"
    """Between the ids of a row that has several."""


class NegativeSamplerV2(SamplerOptions):
    """Items by weight, none with a positive edge to the user."""

    user_input_path: UserTable
    item_input_path: ItemTable
    pos_edge_input_path: PositiveEdges
    num_sample: NumSample
    user_id_field: UserId


class HardNegativeSampler(SamplerOptions):
    """Items by weight, and some of each user's hard negatives."""

    user_input_path: UserTable
    item_input_path: ItemTable
    hard_neg_edge_input_path: str
    """Table of hard negative edges: user id, item id, weight."""

    num_sample: NumSample
    num_hard_sample: NonNegativeInt = 0
    """Most hard negatives of each user."""

    user_id_field: UserId


class HardNegativeSamplerV2(HardNegativeSampler):
    """Items without a positive edge to the user, and some of each user's hard negatives."""

    pos_edge_input_path: PositiveEdges


class TDMSampler(SamplerOptions):
    """All ancestors of an item in the tree, and other nodes of their levels."""

    item_input_path: str
    """Table of tree nodes: id, weight, attributes."""

    edge_input_path: str
    """Table of edges from a leaf to its ancestors."""

    predict_edge_input_path: str
    """Table of edges from a node to its children, for search."""

    layer_num_sample: list[NonNegativeInt] = []
    """Negatives at each level, from the root down."""

    remain_ratio: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of the middle levels that is kept."""

    probability_type: Annotated[str, words("UNIFORM", "ARITHMETIC", "RECIPROCAL")] = "UNIFORM"
    """How the kept levels are chosen."""


class SamplerSection(Section):
    """The part of data_config about sampling."""

    one_of: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "sampler": (
            "negative_sampler",
            "negative_sampler_v2",
            "hard_negative_sampler",
            "hard_negative_sampler_v2",
            "tdm_sampler",
        )
    }

    negative_sampler: Annotated[NegativeSampler | None, Later("negative_sampler")] = None
    negative_sampler_v2: Annotated[NegativeSamplerV2 | None, Later("negative_sampler_v2")] = None
    hard_negative_sampler: Annotated[HardNegativeSampler | None, Later("hard_negative_sampler")] = None
    hard_negative_sampler_v2: Annotated[HardNegativeSamplerV2 | None, Later("hard_negative_sampler_v2")] = (
        None
    )
    tdm_sampler: Annotated[TDMSampler | None, Later("tdm_sampler")] = None
