"""Options of the building blocks that several models share."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

from penstock.config.section import DropoutRatio, Section


class Similarity(StrEnum):
    """How two vectors are compared."""

    COSINE = "COSINE"
    INNER_PRODUCT = "INNER_PRODUCT"
    EUCLID = "EUCLID"


class MLP(Section):
    """Fully connected layers."""

    hidden_units: list[PositiveInt] = []
    """Width of each layer, from the input up."""

    dropout_ratio: list[DropoutRatio] = []
    """Share dropped after each layer: none, one for all layers, or one for each."""

    activation: str = "nn.ReLU"
    """Name of a torch module, such as nn.ReLU or nn.GELU; empty for none."""

    use_bn: bool = False
    """Batch normalisation after each linear layer."""

    bias: bool = True
    """Whether the linear layers have a bias."""

    use_ln: bool = False
    """Layer normalisation after each linear layer."""


FinalMLP = Annotated[MLP, Field(description="From the joined parts to the output.")]
DeepMLP = Annotated[MLP, Field(description="On the concatenated embeddings.")]
GateMLP = Annotated[MLP | None, Field(description="Before each gate's softmax.")]
AttentionMLP = Annotated[MLP, Field(description="Scores one step of the history against the query.")]


class ExtractionNetwork(Section):
    """One level of experts, of the tasks and shared."""

    network_name: str
    """Name of this extraction level."""

    expert_num_per_task: PositiveInt
    """Experts that belong to each task."""

    share_num: NonNegativeInt | None = None
    """Experts shared by all tasks; absent in the last level when it shares none."""

    task_expert_net: MLP
    """Each task's expert."""

    share_expert_net: MLP | None = None
    """The shared expert."""


class VariationalDropout(Section):
    """Learned dropout rates that tell which features matter."""

    regularization_lambda: float = 0.01
    """Weight of the dropout's own loss."""

    embedding_wise_variational_dropout: bool = False
    """One rate for each embedding value instead of one for each feature."""


class B2ICapsule(Section):
    """Behaviour-to-interest capsules: a history becomes several interest vectors."""

    max_k: PositiveInt = 5
    """Most interest vectors of one user."""

    max_seq_len: PositiveInt
    """Longest sequence that is looked at; longer ones are cut."""

    high_dim: PositiveInt
    """Width of an interest vector."""

    num_iters: PositiveInt = 3
    """Routing iterations."""

    routing_logits_scale: float = 20.0
    """Factor on the routing logits."""

    routing_logits_stddev: float = 1.0
    """Spread of the initial routing logits."""

    squash_pow: float = 1.0
    """Exponent of the squash function."""

    const_caps_num: bool = False
    """The same number of interests for every user instead of one that grows with the history."""

    routing_init_method: str = "normal"
    """How routing logits start."""


class MaskBlock(Section):
    """One instance-guided mask and the layer it gates."""

    reduction_ratio: PositiveFloat = 1.0
    """Width of a mask's aggregation layer, as a multiple of its input."""

    aggregation_dim: NonNegativeInt | None = None
    """Width of a mask's aggregation layer; overrides reduction_ratio."""

    hidden_dim: PositiveInt
    """Width of a block's output."""


class MaskNetModule(Section):
    """Mask blocks and what is on top of them."""

    n_mask_blocks: PositiveInt
    """Number of mask blocks."""

    mask_block: MaskBlock
    """The shape of each block."""

    top_mlp: MLP | None = None
    """On top of the blocks."""

    use_parallel: bool = True
    """Blocks side by side on the same input; else one after another."""


class Cross(Section):
    """Cross layers with a weight vector."""

    cross_num: PositiveInt = 3
    """Number of cross layers."""


class CrossV2(Cross):
    """Cross layers with a low-rank weight matrix."""

    low_rank: PositiveInt = 32
    """Rank of each cross layer's weight."""


class CIN(Section):
    """Compressed interaction network."""

    cin_layer_size: list[PositiveInt] = []
    """Feature maps of each layer."""


class WuKongLayer(Section):
    """One layer of stacked factorisation machines."""

    lcb_feature_num: PositiveInt
    """Vectors out of the linear compression block."""

    fmb_feature_num: PositiveInt
    """Vectors out of the factorisation machine block."""

    compressed_feature_num: PositiveInt = 16
    """Vectors that the pairwise products are compressed to."""

    feature_num_mlp: MLP
    """From the products to the block's vectors."""
