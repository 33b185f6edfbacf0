"""Options of the semantic-id models, known by name so that old files are told what is refused."""

from pydantic import NonNegativeInt, PositiveInt

from penstock.config.section import Section


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

    codebook: list[PositiveInt] = []
    normalize_residuals: bool = False
    faiss_kmeans_kwargs: FaissKmeansConfig | None = None
    train_sample_size: NonNegativeInt = 0
    candidate_output_config: SidCandidateOutputConfig | None = None
