"""Every encoder of a sequence against what it means, written out row by row."""

import pytest
import torch

from penstock.config.errors import ConfigError
from penstock.models.layers.sequences import build_encoder
from penstock.models.sections.groups import SeqEncoderConfig

LENGTHS = torch.tensor([3, 0, 5, 1])
QUERY_DIM, STEP_DIM = 4, 6


def encoder(query_dim=QUERY_DIM, **section):
    torch.manual_seed(0)
    config = SeqEncoderConfig.model_validate(section)
    return build_encoder(config.section, query_dim, STEP_DIM, f"encoder.{config.kind}")


def history():
    """Queries, and sequences padded with zeros to 5 steps."""
    generator = torch.Generator().manual_seed(1)
    query, sequence = (
        torch.randn(shape, generator=generator) for shape in ((4, QUERY_DIM), (4, 5, STEP_DIM))
    )
    return query, sequence * (torch.arange(5) < LENGTHS[:, None])[:, :, None]


def rows(max_steps=5):
    """The query of each row, as wide as a step, and its steps."""
    query, sequence = history()
    for row, length in enumerate(LENGTHS.tolist()):
        yield (
            torch.cat([query[row], torch.zeros(STEP_DIM - QUERY_DIM)]),
            sequence[row, : min(length, max_steps)],
        )


def scores(layer, query, steps):
    return [layer.score(layer.mlp(torch.cat([query, s, query - s, query * s])[None]))[0, 0] for s in steps]


def softmax_mean(scores_of_steps, steps):
    if not len(steps):
        return torch.zeros(STEP_DIM)
    return torch.softmax(torch.stack(scores_of_steps), dim=0) @ steps


@pytest.mark.parametrize("max_steps", [0, 2])
def test_din(max_steps):
    layer = encoder(din_encoder={"attn_mlp": {"hidden_units": [8]}, "max_seq_length": max_steps})
    expected = [softmax_mean(scores(layer, query, steps), steps) for query, steps in rows(max_steps or 5)]

    torch.testing.assert_close(layer(*history(), LENGTHS), torch.stack(expected))


def test_simple_attention():
    layer = encoder(simple_attention={})
    expected = [softmax_mean([query @ s for s in steps], steps) for query, steps in rows()]

    torch.testing.assert_close(layer(*history(), LENGTHS), torch.stack(expected))


@pytest.mark.parametrize("pooling", ["mean", "sum"])
def test_pooling(pooling):
    layer = encoder(pooling_encoder={"pooling_type": pooling, "max_seq_length": 4})
    expected = [getattr(steps, pooling)(dim=0).nan_to_num() for _, steps in rows(4)]

    torch.testing.assert_close(layer(*history(), LENGTHS), torch.stack(expected))


def test_multi_window_din():
    layer = encoder(multi_window_din_encoder={"attn_mlp": {"hidden_units": [8]}, "windows_len": [1, 3]})
    expected = []
    for query, steps in rows(4):
        weighed = [score * s for score, s in zip(scores(layer, query, steps), steps, strict=True)]
        means = [
            torch.stack(w).mean(dim=0) if w else torch.zeros(STEP_DIM) for w in (weighed[:1], weighed[1:])
        ]
        expected.append(torch.cat([*means, query]))

    assert layer.output_dim == 3 * STEP_DIM
    torch.testing.assert_close(layer(*history(), LENGTHS), torch.stack(expected))


def test_self_attention():
    layer = encoder(self_attention_encoder={"multihead_attn_dim": 8, "num_heads": 2})
    expected = []
    for _, steps in rows():
        x = layer.input(steps)[None]
        expected.append(layer.attention(x, x, x)[0][0].mean(dim=0) if len(steps) else torch.zeros(8))

    torch.testing.assert_close(layer(None, history()[1], LENGTHS), torch.stack(expected))


def test_padding_does_not_enter_batch_normalisation():
    layer = encoder(din_encoder={"attn_mlp": {"hidden_units": [8], "use_bn": True}})
    query, sequence = history()
    longer = torch.cat([sequence, torch.zeros(4, 20, STEP_DIM)], dim=1)

    torch.testing.assert_close(layer(query, longer, LENGTHS), layer(query, sequence, LENGTHS))


def test_a_query_may_not_be_wider_than_a_step():
    with pytest.raises(ConfigError) as caught:
        encoder(query_dim=7, simple_attention={})

    assert str(caught.value) == (
        "encoder.simple_attention: its query is 7 wide, a step of its sequence 6; a query may not be wider"
    )
