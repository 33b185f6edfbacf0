import pytest
from pydantic import ValidationError

from tests.config.toy import Adam, DataConfig, Mode, Sgd, TrainConfig


def test_scalars_are_strict_but_an_integer_is_a_number():
    assert Adam.model_validate({"lr": 1}).lr == 1.0
    for data in ({"lr": "1"}, {"amsgrad": 1}, {"amsgrad": "true"}):
        with pytest.raises(ValidationError):
            Adam.model_validate(data)


def test_enums_are_written_by_name():
    assert DataConfig.model_validate({"fg_mode": "FG_DAG"}).fg_mode is Mode.FG_DAG


def test_the_chosen_member_of_a_group():
    train = TrainConfig(sgd_optimizer=Sgd(lr=0.5))

    assert train.chosen("optimizer") == ("sgd_optimizer", Sgd(lr=0.5))
    assert train.chosen("length") is None


def test_two_members_of_a_group_exclude_each_other():
    with pytest.raises(
        ValidationError, match="only one of adam_optimizer, sgd_optimizer may be set; both are"
    ):
        TrainConfig(sgd_optimizer=Sgd(), adam_optimizer=Adam())


def test_what_was_written_is_remembered():
    assert DataConfig.model_validate({"shuffle": False}).model_fields_set == {"shuffle"}
