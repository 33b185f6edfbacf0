"""Whatever a run file can say survives every syntax."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.config.load import parse_section
from penstock.config.write import dump_text, dump_yaml, section_data
from penstock.features.sections import FeatureConfig
from penstock.models.sections import ModelConfig
from penstock.optim.sections import DenseOptimizer, SparseOptimizer
from penstock.prep.sections import Preprocessing
from penstock.run.run_config import DataConfig, RunConfig
from penstock.training.sections import EarlyStopping, GradClipping
from tests.config.strategies import section_strategy

WRITERS = {"yaml": dump_yaml, "text": dump_text}
SLOWLY = settings(max_examples=15, suppress_health_check=list(HealthCheck))


def parts(section):
    return section_strategy(section).map(section_data)


@st.composite
def runs(draw):
    """Run files that train: exactly one of num_steps and num_epochs is hardly ever drawn by chance."""
    run = draw(parts(RunConfig))
    train_config = {
        "sparse_optimizer": draw(parts(SparseOptimizer)),
        "dense_optimizer": draw(parts(DenseOptimizer)),
        "early_stopping": draw(parts(EarlyStopping)),
        "grad_clipping": draw(parts(GradClipping)),
        draw(st.sampled_from(["num_steps", "num_epochs"])): draw(st.integers(1, 9)),
    }
    return RunConfig.model_validate({**run, "train_config": train_config})


STRATEGIES = {
    "a run": runs(),
    **{
        part.__name__: section_strategy(part)
        for part in (DataConfig, FeatureConfig, ModelConfig, Preprocessing)
    },
}


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES.keys())
@SLOWLY
@given(data=st.data())
def test_what_was_written_is_read_back(strategy, data):
    section = data.draw(strategy)

    for syntax, write in WRITERS.items():
        again = parse_section(type(section), write(section), syntax).section
        assert again == section
        assert section_data(again) == section_data(section)


@SLOWLY
@given(run=runs())
def test_the_whole_configuration_with_its_defaults_is_read_back(run):
    for syntax, write in WRITERS.items():
        assert parse_section(RunConfig, write(run, full=True), syntax).section == run
