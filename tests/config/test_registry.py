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
)


def test_a_name_that_is_not_known():
    parts: Registry[object] = Registry("reader", {"parquet": "a:b", "csv": "a:c"})

    with pytest.raises(ConfigError, match=r"^unknown reader 'parket'; did you mean 'parquet'\?$"):
        parts.get("parket")


def test_an_installed_package_gives_names(tmp_path, monkeypatch):
    package = tmp_path / "own-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
    groups = "".join(f"[{group}]\nexact = decimal:Decimal\n" for group in GROUPS.values())
    (package / "entry_points.txt").write_text(groups)
    monkeypatch.syspath_prepend(str(tmp_path))

    assert [find_part(kind, CustomPart(import_path="exact")) for kind in GROUPS] == [Decimal] * len(GROUPS)


@pytest.mark.parametrize(
    ("place", "given", "message"),
    [
        ("nowhere.part:Loss", (), "there is no module 'nowhere'; is its folder on PYTHONPATH?"),
        ("math:tau2", (), "'math' has no 'tau2'; did you mean 'tau'?"),
        ("operator:truediv", (1, 0), "cannot be made with its options: ZeroDivisionError: division by zero"),
        (
            "Loss",
            (),
            (
                "is no entry point of the group penstock.losses (there: none); "
                'write it as "package.module:attribute"'
            ),
        ),
    ],
)
def test_what_cannot_be_made_is_reported(place, given, message):
    with pytest.raises(ConfigError) as caught:
        make_part("loss", CustomPart(import_path=place), *given)

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
        make_part("loss", CustomPart(import_path="own_broken:loss"))

    assert str(caught.value) == f"custom_loss 'own_broken:loss': cannot be imported: {message}"
