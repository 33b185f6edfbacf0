"""TorchEasyRec pipeline files as people have them: what they leave out, repeat and shorten is read as it is meant."""

import pytest

from penstock.config.errors import ConfigError
from penstock.run.requirements import require_available
from penstock.run.run_config import RunConfig, load_run

TRAIN = "train_config { dense_optimizer { adam_optimizer {} } sparse_optimizer { sgd_optimizer {} } num_epochs: 1 }"
SEQUENCE = """
feature_configs { sequence_feature { sequence_name: "click_seq" sequence_length: 50
  features { id_feature { feature_name: "item" num_buckets: 100 embedding_dim: 8 } }
  features { raw_feature { feature_name: "price" } } } }
"""
TOWERS = "user_tower { input: 'user' mlp { hidden_units: [8] } } item_tower { input: 'item' }"


@pytest.fixture
def load(tmp_path):
    def load_text(text: str) -> RunConfig:
        path = tmp_path / "pipeline.config"
        path.write_text(text)
        return load_run(path)

    return load_text


def refusal(run: RunConfig) -> str:
    with pytest.raises(ConfigError) as told:
        require_available(run)
    return str(told.value)


def features(*names, options="num_buckets: 10 embedding_dim: 4"):
    one = 'feature_configs {{ id_feature {{ feature_name: "{}" {} }} }}\n'
    return "".join(one.format(name, options) for name in names)


def test_no_expression_a_metric_twice_and_a_scalar_twice(load, caplog):
    run = load(
        features("user", "item")
        + TRAIN
        + f"""
        data_config {{ label_fields: "clk"
          hard_negative_sampler {{ user_input_path: "" item_input_path: "" hard_neg_edge_input_path: "" num_sample: 9
            item_id_field: "item" user_id_field: "user" attr_delimiter: "," attr_delimiter: "\\x02" }} }}
        model_config {{
          feature_groups {{ group_name: "user" feature_names: "user" group_type: DEEP }}
          feature_groups {{ group_name: "item" feature_names: "item" group_type: DEEP }}
          dssm {{ {TOWERS} }}
          metrics {{ recall_at_k {{ top_k: 1 }} }} metrics {{ recall_at_k {{ top_k: 5 }} }}
          losses {{ softmax_cross_entropy {{}} }} }}
        """
    )

    assert list(run.model.results()) == ["recall@1", "recall@5", "softmax_cross_entropy"]
    sampler = run.data_config.hard_negative_sampler
    assert (sampler.num_hard_sample, sampler.attr_delimiter, run.model.dssm.output_dim) == (0, "\x02", 0)
    assert caplog.messages == [
        "data_config.hard_negative_sampler.attr_delimiter: is written twice; the last one counts"
    ]
    assert refusal(run) == "model_config.dssm: the model dssm is not available yet"


@pytest.mark.parametrize("short", ["click_seq_item", "click_seq__item"])
def test_a_feature_of_a_sequence_by_its_older_name_and_an_encoder_without_input(load, short):
    group = f"""model_config {{ feature_groups {{ group_name: "deep" feature_names: "user"
        sequence_groups {{ group_name: "clicks" feature_names: "{short}" }}
        sequence_encoders {{ pooling_encoder {{ }} }} }} dbmtl {{ }} }}"""

    run = load(features("user") + SEQUENCE + group)

    [deep] = run.model.feature_groups
    assert deep.sequence_groups[0].feature_names == ["click_seq__item"]
    with pytest.raises(
        ConfigError, match=r"pooling_encoder.input: is required: the group has 2 sequence groups"
    ):
        load(features("user") + SEQUENCE + group.replace("sequence_enc", "sequence_groups {} sequence_enc"))


def test_an_older_name_that_two_features_could_mean_is_refused(load):
    other = SEQUENCE.replace("click_seq", "click").replace('"item"', '"seq_item"')
    group = 'model_config { feature_groups { group_name: "deep" feature_names: "click_seq_item" } dbmtl { } }'

    with pytest.raises(ConfigError, match=r"there is no feature named 'click_seq_item'; did you mean"):
        load(SEQUENCE + other + group)


def test_a_width_is_required_only_where_a_group_embeds(load):
    groups = 'model_config {{ feature_groups {{ group_name: "deep" feature_names: "{}" }} simple_multi_task {{ }} }}'
    without = features("user") + features("city", options="num_buckets: 10")

    load(without + groups.format("user"))
    with pytest.raises(ConfigError) as told:
        load(without + groups.format("city"))
    assert str(told.value).endswith(
        "line 2, column 19: feature_configs[1].id_feature.embedding_dim: is required: the group 'deep' embeds 'city'"
    )


def test_models_and_losses_that_are_not_built_load(load):
    run = load(
        """
        feature_configs { raw_feature { feature_name: "item" expression: "item:e" value_dim: 16 } }
        data_config { fg_mode: FG_DAG }
        model_config { feature_groups { group_name: "deep" feature_names: "item" group_type: DEEP }
          sid_rqvae { embed_dim: 8 hidden_dims: 16 codebook: 16 codebook: 16 feature_group: "deep" }
          losses { recon_loss { recon_type: "l2" } } losses { commitment_loss { latent_weight: 1.0 } } }
        """
    )

    assert refusal(run) == "model_config.sid_rqvae: the model sid_rqvae is not available yet"


def test_what_nothing_uses_is_a_warning(load, caplog, monkeypatch):
    monkeypatch.setenv("INPUT_TILE", "2")
    run = load(
        features("user")
        + """
        export_config { mixed_precision: "BF16" }
        model_config { feature_groups { group_name: "deep" feature_names: "user" } simple_multi_task { } }
        """
    )

    require_available(run)
    assert caplog.messages == [
        "INPUT_TILE in the environment: use data_config.input_tile: inputs instead",
        "data_config.input_tile: input_tile is not available yet; going on without",
        "export_config.mixed_precision: mixed_precision in export is not available yet; going on without",
    ]
