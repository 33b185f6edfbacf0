"""Names of components, and custom components: found by dotted path, made with options, named among results."""

import sys
from decimal import Decimal

import pytest

from penstock.config.errors import ConfigError
from penstock.config.registry import (
    GROUPS,
    CustomPart,
    Registry,
    find_part,
    make_part,
    require_call,
)


def test_a_component_is_imported_when_it_is_asked_for():
    parts: Registry[type] = Registry("queue", {"heap": "sched:scheduler"})
    sys.modules.pop("sched", None)

    assert list(parts) == ["heap"]
    assert "sched" not in sys.modules
    assert parts.get("heap").__name__ == "scheduler"


def test_a_component_can_register_itself():
    parts: Registry[object] = Registry("reader")

    @parts.register("parquet")
    def open_parquet() -> None: ...

    assert parts.get("parquet") is open_parquet
    assert "parquet" in parts
    with pytest.raises(ValueError, match="reader 'parquet' is registered twice"):
        parts.register("parquet")(print)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("parket", "unknown reader 'parket'; did you mean 'parquet'?"),
        ("xyz", "unknown reader 'xyz'; known: csv, parquet"),
        ("collections:Nothing", "reader 'collections:Nothing': 'collections' has no 'Nothing'"),
    ],
)
def test_a_name_that_is_not_known(name: str, message: str):
    parts: Registry[object] = Registry("reader", {"parquet": "a:b", "csv": "a:c"})

    with pytest.raises(ConfigError) as error:
        parts.get(name)

    assert str(error.value) == message


def test_an_installed_package_gives_names(tmp_path, monkeypatch):
    package = tmp_path / "own-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
    groups = "".join(f"[{group}]\nexact = decimal:Decimal\n" for group in GROUPS.values())
    (package / "entry_points.txt").write_text(groups)
    monkeypatch.syspath_prepend(str(tmp_path))

    assert [find_part(kind, CustomPart(place="exact")) for kind in GROUPS] == [Decimal] * len(GROUPS)


@pytest.mark.parametrize(
    ("place", "given", "message"),
    [
        ("nowhere.part:Loss", (), "there is no module 'nowhere'; is its folder on PYTHONPATH?"),
        ("math:tau2", (), "'math' has no 'tau2'; did you mean 'tau'?"),
        ("math:tau", (), "is 6.283185307179586; name a class or function that makes the loss"),
        ("math:sqrt", ("x",), "cannot be made with its options: must be real number, not str"),
        ("operator:truediv", (1, 0), "cannot be made with its options: ZeroDivisionError: division by zero"),
        (
            "Loss",
            (),
            (
                "is no entry point of the group penstock.losses (there: none); "
                'a place is written "package.module:attribute"'
            ),
        ),
    ],
)
def test_what_cannot_be_made_is_reported(place, given, message):
    with pytest.raises(ConfigError) as caught:
        make_part("loss", CustomPart(place=place), *given)

    assert str(caught.value) == f"custom_loss '{place}': {message}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import no_such_library", "ModuleNotFoundError: No module named 'no_such_library'"),
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


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (5, "gives 5; it must give a function of (predictions, labels)"),
        (
            lambda logits: logits,
            "takes (logits), but is called with (predictions, labels): too many positional arguments",
        ),
    ],
)
def test_what_cannot_be_called_as_its_kind_is_refused(function, message):
    with pytest.raises(ConfigError) as caught:
        require_call("loss", CustomPart(place="own:Loss"), function, "(predictions, labels)")

    assert str(caught.value) == f"custom_loss 'own:Loss': {message}"
