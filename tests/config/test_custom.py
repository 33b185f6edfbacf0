"""Parts of one's own: found by place, made with options, named among results."""

import sys
from decimal import Decimal

import pytest

from penstock.config.errors import ConfigError
from penstock.config.load import parse_section
from penstock.config.registry import (
    GROUPS,
    CustomPart,
    NamedPart,
    find_part,
    make_part,
    require_call,
    result_name,
)


def test_a_place_is_called_with_its_options():
    assert make_part("metric", CustomPart(place="builtins:dict", options={"a": 1})) == {"a": 1}


def test_what_else_is_given_comes_before_the_options():
    assert make_part("optimizer", CustomPart(place="builtins:dict", options={"b": 2}), [("x", 0)], a=1) == {
        "x": 0,
        "a": 1,
        "b": 2,
    }


def test_finding_is_not_making():
    assert find_part("metric", CustomPart(place="decimal:Decimal")) is Decimal


@pytest.mark.parametrize("kind", GROUPS)
def test_an_installed_package_gives_names(kind, tmp_path, monkeypatch):
    package = tmp_path / "own-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(f"[{GROUPS[kind]}]\nexact = decimal:Decimal\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    assert find_part(kind, CustomPart(place="exact")) is Decimal


def test_results_are_named_by_name_or_attribute_or_key():
    assert result_name("custom_metric", NamedPart(place="own:Brier", name="brier")) == "brier"
    assert result_name("custom_metric", NamedPart(place="own:Brier")) == "Brier"
    assert result_name("custom_metric", NamedPart(place="an_entry_point")) == "an_entry_point"
    assert result_name("auc", object()) == "auc"


@pytest.mark.parametrize(
    "text", ['place: "own:Loss" options { fields { key: "w" value { number_value: 2 } } }']
)
def test_text_format_has_options_too(text):
    section = parse_section(CustomPart, text, "text").section

    assert section.options == {"w": 2}


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (
            CustomPart(place="no_such_package.part:Loss"),
            (
                "custom_loss 'no_such_package.part:Loss': there is no module 'no_such_package'; "
                "is its folder on PYTHONPATH?"
            ),
        ),
        (CustomPart(place="math:tau2"), "custom_loss 'math:tau2': 'math' has no 'tau2'; did you mean 'tau'?"),
        (
            CustomPart(place="math:sqrt", options={"y": 1}),
            "custom_loss 'math:sqrt': cannot be made with its options: math.sqrt() takes no keyword arguments",
        ),
        (
            CustomPart(place="Loss"),
            (
                "custom_loss 'Loss': is no entry point of the group penstock.losses (there: none); "
                'a place is written "package.module:attribute"'
            ),
        ),
    ],
)
def test_what_cannot_be_made_is_told(section, message):
    with pytest.raises(ConfigError) as caught:
        make_part("loss", section)

    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import no_such_library", "ModuleNotFoundError: No module named 'no_such_library'"),
        ("import math\nbase = math.nothing", "AttributeError: module 'math' has no attribute 'nothing'"),
        ("base = (", "SyntaxError: '(' was never closed (own_broken.py, line 1)"),
    ],
)
def test_a_module_that_fails_is_no_defect_of_penstock(text, message, tmp_path, monkeypatch):
    (tmp_path / "own_broken.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "own_broken", raising=False)

    with pytest.raises(ConfigError) as caught:
        make_part("loss", CustomPart(place="own_broken:loss"))

    assert str(caught.value) == f"custom_loss 'own_broken:loss': cannot be imported: {message}"


def test_whatever_fails_when_it_is_made_is_told_with_its_kind():
    section = CustomPart(place="operator:truediv")

    with pytest.raises(ConfigError) as caught:
        make_part("loss", section, 1, 0)

    assert str(caught.value) == (
        "custom_loss 'operator:truediv': cannot be made with its options: ZeroDivisionError: division by zero"
    )


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (5, "custom_loss 'own:Loss': gives 5; it must give a function of (predictions, labels)"),
        (
            lambda logits: logits,
            (
                "custom_loss 'own:Loss': takes (logits), but is called with (predictions, labels): "
                "too many positional arguments"
            ),
        ),
    ],
)
def test_what_cannot_be_called_as_its_kind_is_told(function, message):
    with pytest.raises(ConfigError) as caught:
        require_call("loss", CustomPart(place="own:Loss"), function, "(predictions, labels)")

    assert str(caught.value) == message


def test_what_does_not_tell_its_arguments_is_taken_as_it_is():
    require_call("loss", CustomPart(place="builtins:max"), max, "(predictions, labels)")
    require_call("loss", CustomPart(place="own:Loss"), lambda *all: all, "(predictions, labels)")
