import pytest

from penstock.features import build_features
from penstock.features.sections import FeatureConfig, ParsingSection


@pytest.fixture
def one_feature():
    """Builds one feature from its options: one_feature("id_feature", "FG_NORMAL", num_buckets=10, ...)."""

    def build(kind, fg_mode, **options):
        options = {"feature_name": "f", "expression": "user:f", **options}
        if kind == "id_feature":
            options.setdefault("embedding_dim", 4)
        parsing = ParsingSection.model_validate({"fg_mode": fg_mode, "fg_encoded_multival_sep": "|"})
        return build_features([FeatureConfig.model_validate({kind: options})], parsing)[0]

    return build
