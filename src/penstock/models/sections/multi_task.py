"""Options of the models that learn several tasks."""

from typing import Annotated

from pydantic import Field, PositiveFloat, PositiveInt

from penstock.config.section import DropoutRatio, Section
from penstock.models.sections.hstu import HSTU
from penstock.models.sections.layers import MLP, ExtractionNetwork, GateMLP, MaskNetModule
from penstock.models.sections.towers import BayesTaskTower, FusionMTLTower, InterventionTaskTower, TaskTower

NumExperts = Annotated[PositiveInt, Field(description="Number of experts.")]
TaskTowers = Annotated[list[TaskTower], Field(description="One for each task.")]


class SimpleMultiTask(Section):
    """One tower for each task on the same input."""

    task_towers: TaskTowers = []


class MMoE(Section):
    """Experts that every task weighs for itself."""

    expert_mlp: MLP
    """One expert."""

    gate_mlp: GateMLP = None
    num_expert: NumExperts = 3
    task_towers: TaskTowers = []


class DBMTL(Section):
    """Tasks that depend on other tasks, as a Bayesian network."""

    mask_net: MaskNetModule | None = None
    """Before the shared part."""

    bottom_mlp: MLP | None = None
    """Shared by all tasks."""

    expert_mlp: MLP | None = None
    """One expert; absent: no mixture of experts."""

    gate_mlp: GateMLP = None
    num_expert: NumExperts = 3
    task_towers: list[BayesTaskTower] = []
    """One for each task."""


class DC2VR(Section):
    """Tasks that intervene on other tasks."""

    bottom_mlp: MLP | None = None
    """Shared by all tasks."""

    expert_mlp: MLP | None = None
    """One expert; absent: no mixture of experts."""

    gate_mlp: GateMLP = None
    num_expert: NumExperts = 3
    task_towers: list[InterventionTaskTower] = []
    """One for each task."""


class PLE(Section):
    """Levels of shared and private experts."""

    extraction_networks: list[ExtractionNetwork] = []
    """From the bottom up."""

    task_towers: TaskTowers = []


class DlrmHSTU(Section):
    """Ranking of candidates on a sequential transducer."""

    hstu: HSTU
    """The sequence encoder."""

    fusion_mtl_tower: FusionMTLTower
    """The tasks."""

    max_seq_len: PositiveInt
    """Longest sequence that is looked at; longer ones are cut."""

    item_embedding_hidden_dim: PositiveInt = 512
    """Hidden width of the item part."""

    enable_global_average_loss: bool = True
    """Mean over the candidates of all ranks instead of each rank's own."""

    sequence_timestamp_is_ascending: bool = True
    """Whether the newest step is the last."""

    concat_contextual_features: bool = False
    """Give the context to the tasks too."""


class UltraHSTU(DlrmHSTU):
    """Several sequential transducers."""

    hstu: list[HSTU] = []  # type: ignore[assignment]
    """The sequence encoder."""


class PEPNet(Section):
    """Personal gates on embeddings and layers."""

    epnet_hidden_unit: PositiveInt | None = None
    """Hidden width of the gate on the embeddings."""

    epnet_gamma: PositiveFloat = 2.0
    """Largest value of the gate on the embeddings."""

    ppnet_hidden_units: list[PositiveInt] = []
    """Width of each layer of a task's network."""

    ppnet_activation: str = "nn.ReLU"
    """Name of a torch module."""

    ppnet_dropout_ratio: list[DropoutRatio] = []
    """Share dropped after each layer."""

    ppnet_gamma: PositiveFloat = 2.0
    """Largest value of the gates on the layers."""

    domain_input_name: str | None = None
    """Feature that holds the domain."""

    task_domain_num: PositiveInt = 1
    """Number of domains."""

    task_towers: TaskTowers = []
