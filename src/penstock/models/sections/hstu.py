"""Options of the sequential transducer (HSTU): from a history to one vector for each step."""

from pydantic import NonNegativeInt, PositiveFloat, PositiveInt

from penstock.config.section import DropoutRatio, Section
from penstock.models.sections.layers import MLP


class GRSimpleActionEncoder(Section):
    """Actions as bits of an integer column."""

    action_embedding_dim: PositiveInt | None = None
    """Width of one action's vector."""

    action_weights: list[NonNegativeInt] = []
    """Bit of each action in the action column."""

    watchtime_to_action_thresholds: list[NonNegativeInt] = []
    """Watch times from which an extra action counts."""

    watchtime_to_action_weights: list[NonNegativeInt] = []
    """Bits of the actions that watch times make."""

    embedding_init_std: float = 0.1
    """Spread of the initial action vectors."""


class GRActionEncoder(Section, group="action_encoder"):
    """How actions become vectors."""

    simple_action_encoder: GRSimpleActionEncoder | None = None
    """Actions as bits of an integer."""


class GRSliceContentEncoder(Section):
    """Keeps the columns that history and candidates share."""


class GRPadContentEncoder(Section):
    """Fills the columns that one side lacks."""


class GRMLPContentEncoder(Section):
    """Maps history and candidates to one width."""

    uih_mlp: MLP
    """For the steps of the user's history."""

    target_mlp: MLP
    """For the candidates."""


class GRContentEncoder(Section, group="content_encoder"):
    """How items become vectors."""

    slice_content_encoder: GRSliceContentEncoder | None = None
    """Keeps the columns that history and candidates share."""

    pad_content_encoder: GRPadContentEncoder | None = None
    """Fills the columns that one side lacks."""

    mlp_content_encoder: GRMLPContentEncoder | None = None
    """Maps both sides to one width."""


class GRSimpleContextualizedMLP(Section):
    """The same weights for every user."""

    hidden_dim: PositiveInt
    """Width of the hidden layer."""


class GRParameterizedContextualizedMLP(Section):
    """Weights that depend on the user's context."""

    hidden_dim: PositiveInt
    """Width of the hidden layer."""

    contextual_dropout_ratio: DropoutRatio = 0.3
    """Share of the context's activations dropped in training."""


class GRContextualizedMLP(Section, group="contextualized_mlp"):
    """From encoder outputs to the model's width."""

    simple_mlp: GRSimpleContextualizedMLP | None = None
    """The same weights for every user."""

    parameterized_mlp: GRParameterizedContextualizedMLP | None = None
    """Weights that depend on the user's context."""


class GRUIHPreprocessor(Section):
    """The history alone."""

    action_encoder: GRActionEncoder | None = None
    """How actions become vectors."""

    action_mlp: GRContextualizedMLP | None = None
    """From action vectors to the model's width."""


class GRContextualPreprocessor(GRUIHPreprocessor):
    """Context first, then steps that hold item and action together."""

    content_encoder: GRContentEncoder
    """How items become vectors."""

    content_mlp: GRContextualizedMLP
    """From item vectors to the model's width."""


class GRContextualInterleavePreprocessor(Section):
    """Context first, then items and actions in turn."""

    action_encoder: GRActionEncoder | None = None
    """How actions become vectors."""

    enable_interleaving: bool = True
    """Items and actions as separate steps of the sequence."""

    action_mlp: GRContextualizedMLP | None = None
    """From action vectors to the model's width."""

    content_encoder: GRContentEncoder
    """How items become vectors."""

    content_mlp: GRContextualizedMLP
    """From item vectors to the model's width."""


class GRInputPreprocessor(Section, group="input_preprocessor"):
    """From features to the steps of one sequence."""

    contextual_preprocessor: GRContextualPreprocessor | None = None
    """Context, then steps that hold item and action together."""

    contextual_interleave_preprocessor: GRContextualInterleavePreprocessor | None = None
    """Context, then items and actions in turn."""

    uih_preprocessor: GRUIHPreprocessor | None = None
    """The history alone."""


class GRL2NormPostprocessor(Section):
    """Scales each output to length one."""


class GRLayerNormPostprocessor(Section):
    """Layer normalisation of each output."""


class GRTimestampLayerNormPostprocessor(Section):
    """Layer normalisation of the output joined with its time."""

    time_duration_period_units: list[PositiveInt] = []
    """Length of each period in seconds (a day, a week)."""

    time_duration_units_per_period: list[PositiveInt] = []
    """How many units each period is divided into."""


class GROutputPostprocessor(Section, group="output_postprocessor"):
    """From the last layer to the output."""

    l2norm_postprocessor: GRL2NormPostprocessor | None = None
    """Scale to length one."""

    layernorm_postprocessor: GRLayerNormPostprocessor | None = None
    """Layer normalisation."""

    timestamp_layernorm_postprocessor: GRTimestampLayerNormPostprocessor | None = None
    """Layer normalisation of the output joined with its time."""


class STU(Section):
    """One sequential transduction layer."""

    embedding_dim: PositiveInt
    """Width of a step."""

    num_heads: PositiveInt
    """Attention heads."""

    hidden_dim: PositiveInt
    """Width of the value part of a head."""

    attention_dim: PositiveInt
    """Width of query and key of a head."""

    output_dropout_ratio: DropoutRatio = 0.3
    """Share of a layer's output dropped in training."""

    max_attn_len: NonNegativeInt | None = None
    """How many steps back a step may look; absent: all."""

    attn_alpha: float | None = None
    """Factor on the attention logits; absent: one over the root of attention_dim."""

    use_group_norm: bool = False
    """Normalise each head apart."""

    recompute_normed_x: bool = True
    """Compute the normalised input again in backward instead of keeping it."""

    recompute_uvqk: bool = True
    """Compute the projections again in backward instead of keeping them."""

    recompute_y: bool = True
    """Compute the output again in backward instead of keeping it."""

    sort_by_length: bool = True
    """Long sequences first, which balances the kernel's work."""

    contextual_seq_len: int = -1
    """Steps of context at the front; -1: counted from the features."""

    sla_k1: NonNegativeInt | None = None
    """Steps near the end that semi-local attention sees."""

    sla_k2: NonNegativeInt | None = None
    """Steps at the front that semi-local attention sees."""

    scaling_seqlen: int = -1
    """Length that attention is divided by; -1: the longest of the batch."""


class GRPositionalEncoder(Section):
    """Vectors for the position and the age of a step."""

    num_position_buckets: PositiveInt
    """Size of the position table."""

    num_time_buckets: PositiveInt | None = None
    """Size of the time table."""

    use_time_encoding: bool = False
    """Add a vector for the time before the request."""

    time_bucket_fn: str = "sqrt"
    """How seconds become a bucket."""

    time_bucket_increments: PositiveFloat = 60.0
    """Seconds in the first bucket."""


class HSTU(Section):
    """The whole encoder."""

    stu: STU
    """One layer."""

    input_dropout_ratio: DropoutRatio = 0.2
    """Share of the input dropped in training."""

    attn_num_layers: PositiveInt = 3
    """Number of layers."""

    positional_encoder: GRPositionalEncoder
    """Where a step stands in the sequence."""

    input_preprocessor: GRInputPreprocessor
    """From features to steps."""

    output_postprocessor: GROutputPostprocessor
    """From the last layer to the output."""

    attn_truncation_split_layer: NonNegativeInt | None = None
    """Layer from which only the tail is kept."""

    attn_truncation_tail_len: NonNegativeInt | None = None
    """Steps that are kept from that layer on."""

    name: str = ""
    """Name of this encoder where a model has several."""
