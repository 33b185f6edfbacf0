"""Options of models that match users and items, and of those that make semantic ids."""

from pydantic import NonNegativeInt, PositiveFloat, PositiveInt

from penstock.config.section import Section
from penstock.models.sections.layers import FinalMLP, Similarity
from penstock.models.sections.towers import DATTower, HSTUUserTower, MINDUserTower, MultiWindowDINTower, Tower


class DSSM(Section):
    """Two towers."""

    user_tower: Tower
    """From the user's features to a vector."""

    item_tower: Tower
    """From the item's features to a vector."""

    output_dim: NonNegativeInt = 0
    """Width of the vectors that are compared; 0: that of the last layer."""

    similarity: Similarity = Similarity.INNER_PRODUCT
    """How two vectors are compared."""

    temperature: PositiveFloat = 1.0
    """Similarities are divided by it."""

    in_batch_negative: bool = False
    """Use the other rows' items as negatives."""


class DSSMV2(DSSM):
    """Two towers over one shared set of embeddings."""


class HSTUMatch(DSSM):
    """A sequential transducer for the user, a tower for the item."""

    user_tower: HSTUUserTower  # type: ignore[assignment]
    """From the user's features to a vector."""

    sequence_timestamp_is_ascending: bool = True
    """Whether the newest step is the last."""


class TDM(Section):
    """Tree-based deep match."""

    multiwindow_din: MultiWindowDINTower
    """Attention over windows of the history."""

    final: FinalMLP


class DAT(DSSM):
    """Two towers that mimic each other."""

    user_tower: DATTower  # type: ignore[assignment]
    """From the user's features to a vector."""

    item_tower: DATTower  # type: ignore[assignment]
    """From the item's features to a vector."""

    amm_i_weight: float = 0.5
    """Weight of the item side's mimic loss."""

    amm_u_weight: float = 0.5
    """Weight of the user side's mimic loss."""


class MIND(Section):
    """Several interest vectors for each user."""

    user_tower: MINDUserTower
    """From the user's features to a vector."""

    item_tower: Tower
    """From the item's features to a vector."""

    simi_pow: float = 10.0
    """How sharply the label's item picks among the interests."""

    similarity: Similarity = Similarity.COSINE
    """How two vectors are compared."""

    in_batch_negative: bool = False
    """Use the other rows' items as negatives."""

    temperature: PositiveFloat = 1.0
    """Similarities are divided by it."""

    output_dim: NonNegativeInt = 0
    """Width of the vectors that are compared; 0: that of the last layer."""


class FaissKmeansConfig(Section):
    """Arguments of k-means."""

    niter: NonNegativeInt | None = None
    nredo: NonNegativeInt | None = None
    seed: int | None = None
    max_points_per_centroid: NonNegativeInt | None = None
    min_points_per_centroid: NonNegativeInt | None = None
    spherical: bool | None = None
    verbose: bool | None = None


class SinkhornConfig(Section):
    """Balanced assignment of codes."""

    iters: PositiveInt = 5
    epsilon: float = 10.0
    enabled: bool = True


class ContrastiveConfig(Section):
    """Groups that hold pairs of items."""

    pair_feature_group: str
    pair_flag_feature_group: str


class SidCandidateOutputConfig(Section):
    """Further codes beside the chosen one."""

    enabled: bool = False
    topk: PositiveInt = 1
    strategy: str = "last_layer_knn"


class SidRqvae(Section):
    """Residual quantisation by an autoencoder."""

    feature_group: str | None = None
    embed_dim: PositiveInt = 64
    hidden_dims: list[PositiveInt] = []
    codebook: list[PositiveInt] = []
    forward_mode: str = "ste"
    normalize_residuals: bool = False
    distance_type: str = "l2"
    rotation_trick: bool = False
    kmeans_init: bool = False
    sinkhorn_config: SinkhornConfig | None = None
    contrastive_config: ContrastiveConfig | None = None
    candidate_output_config: SidCandidateOutputConfig | None = None


class SidRqkmeans(Section):
    """Residual quantisation by k-means."""

    feature_group: str | None = None
    codebook: list[PositiveInt] = []
    normalize_residuals: bool = False
    faiss_kmeans_kwargs: FaissKmeansConfig | None = None
    train_sample_size: NonNegativeInt = 0
    candidate_output_config: SidCandidateOutputConfig | None = None
