"""Options of the models that rank with one task."""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from pydantic import PositiveInt

from penstock.config.errors import Problem, hint
from penstock.config.section import Section
from penstock.features.sections import NamedFeature
from penstock.features.sections.types import has_vector
from penstock.models.sections.groups import FeatureGroupConfig, FeatureGroupType, GroupedModel
from penstock.models.sections.layers import (
    CIN,
    MLP,
    Cross,
    CrossV2,
    DeepMLP,
    FinalMLP,
    MaskNetModule,
    Similarity,
    WuKongLayer,
)
from penstock.models.sections.towers import DINTower, Tower


class WideAndDeep(GroupedModel):
    """A linear part on wide features and an MLP on deep ones."""

    required_groups: ClassVar[Mapping[str, FeatureGroupType]] = {
        "wide": FeatureGroupType.WIDE,
        "deep": FeatureGroupType.DEEP,
    }

    deep: DeepMLP
    final: MLP | None = None
    """On the joined outputs; absent: their sum."""

    wide_embedding_dim: PositiveInt = 4
    """Width of each feature's vector in the wide part."""

    wide_init_fn: str | None = None
    """Initialiser of the wide part's tables."""


class DeepFM(WideAndDeep):
    """Wide, factorisation machine and MLP over shared embeddings."""

    required_groups: ClassVar[Mapping[str, FeatureGroupType]] = {"deep": FeatureGroupType.DEEP}
    optional_groups: ClassVar[Mapping[str, FeatureGroupType]] = {
        "wide": FeatureGroupType.WIDE,
        "fm": FeatureGroupType.DEEP,
    }

    def group_problems(
        self, name: str, groups: Sequence[FeatureGroupConfig], features: Mapping[str, NamedFeature]
    ) -> Iterator[Problem]:
        """Vectors of one width are multiplied: those of the group `fm`, or else of the ids of `deep`."""
        yield from super().group_problems(name, groups, features)
        numbered = {group.group_name: (index, group) for index, group in enumerate(groups)}
        if "fm" not in numbered and "deep" not in numbered:
            return
        index, group = numbered.get("fm") or numbered["deep"]
        key = ("model_config", "feature_groups", index, "feature_names")
        vectors: list[NamedFeature] = []
        for position, feature_name in enumerate(group.feature_names):
            feature = features.get(feature_name)
            if feature is not None and has_vector(feature.section):
                vectors.append(feature)
            elif feature is not None and group.group_name == "fm":
                message = f"'{feature_name}' has no embedding; the group 'fm' takes vectors"
                yield Problem((*key, position), message)
        for feature in vectors[1:]:
            width, first_width = feature.section.embedding_dim, vectors[0].section.embedding_dim
            if width != first_width and None not in (width, first_width):
                yield Problem(
                    (*feature.key, "embedding_dim"),
                    f"is {width}, but '{vectors[0].name}' has {first_width}; "
                    "the factorisation machine needs one for all of its features",
                )


class MultiTower(GroupedModel):
    """One MLP for each feature group."""

    towers: list[Tower] = []
    """One tower for each feature group."""

    final: FinalMLP

    def group_problems(
        self, name: str, groups: Sequence[FeatureGroupConfig], features: Mapping[str, NamedFeature]
    ) -> Iterator[Problem]:
        """Every tower has a group of its type, and every group a tower."""
        types = {group.group_name: group.group_type for group in groups}
        inputs: set[str] = set()
        for kind, wanted in (("towers", FeatureGroupType.DEEP), ("din_towers", FeatureGroupType.SEQUENCE)):
            for index, tower in enumerate(getattr(self, kind, [])):
                path = ("model_config", name, kind, index, "input")
                inputs.add(tower.input)
                if tower.input not in types:
                    message = f"there is no feature group named '{tower.input}'; {hint(tower.input, types)}"
                    yield Problem(path, message)
                elif types[tower.input] is not wanted:
                    message = f"the group '{tower.input}' is {types[tower.input]}; {kind} take {wanted}"
                    yield Problem(path, message)
        for index, group in enumerate(groups):
            key = ("model_config", "feature_groups", index)
            if group.group_name not in inputs:
                yield Problem((*key, "group_name"), f"no tower of {name} reads '{group.group_name}'")
            elif group.has_steps and all(
                each in features and features[each].sequence is not None for each in group.feature_names
            ):
                message = "has no query: it holds sequences only; add a feature of the row"
                yield Problem((*key, "feature_names"), message)
        if not inputs:
            yield Problem(("model_config", name, "towers"), "is empty; a model needs a tower")


class MultiTowerDIN(MultiTower):
    """Towers and attention over the history."""

    din_towers: list[DINTower] = []
    """One attention tower for each sequence group."""


class DLRM(Section):
    """Pairwise products of embeddings and a dense part."""

    dense_mlp: MLP | None = None
    """From the dense features to one vector of embedding width."""

    arch_with_sparse: bool = True
    """Give the embeddings themselves to the final part, beside their products."""

    final: FinalMLP


class MaskNet(Section):
    """Instance-guided masks."""

    mask_net_module: MaskNetModule
    """The mask blocks."""


class DCNV1(Section):
    """Cross layers beside an MLP."""

    cross: Cross
    """The cross layers."""

    deep: DeepMLP
    final: FinalMLP


class DCNV2(Section):
    """Low-rank cross layers beside an MLP."""

    backbone: MLP | None = None
    """Before the cross layers."""

    cross: CrossV2
    """The cross layers."""

    deep: MLP | None = None
    """Beside the cross layers; absent: none."""

    final: FinalMLP


class xDeepFM(Section):
    """Compressed interactions, wide part and MLP."""

    cin: CIN
    """Compressed interaction network."""

    deep: DeepMLP
    final: FinalMLP
    wide_embedding_dim: PositiveInt = 16
    """Width of each feature's vector in the wide part."""

    wide_init_fn: str | None = None
    """Initialiser of the wide part's tables."""


class WuKong(Section):
    """Stacked factorisation machines."""

    dense_mlp: MLP | None = None
    """From the dense features to one vector of embedding width."""

    wukong_layers: list[WuKongLayer] = []
    """From the bottom up."""

    final: FinalMLP


class RocketLaunching(Section):
    """A light network that learns from a large one beside it."""

    share_mlp: MLP | None = None
    """Under both networks."""

    booster_mlp: MLP
    """The large network, for training only."""

    light_mlp: MLP
    """The small network, which is served."""

    feature_based_distillation: bool = False
    """Also compare hidden layers."""

    feature_distillation_function: Similarity = Similarity.COSINE
    """How hidden layers are compared."""
