import sys

import pytest

from penstock.config.errors import ConfigError
from penstock.config.registry import Registry


def test_a_part_is_imported_when_it_is_asked_for():
    parts: Registry[type] = Registry("queue", {"heap": "sched:scheduler"})
    sys.modules.pop("sched", None)

    assert list(parts) == ["heap"]
    assert "sched" not in sys.modules
    assert parts.get("heap").__name__ == "scheduler"


def test_a_part_can_register_itself():
    parts: Registry[object] = Registry("reader")

    @parts.register("parquet")
    def open_parquet() -> None: ...

    assert parts.get("parquet") is open_parquet
    assert "parquet" in parts
    with pytest.raises(ValueError, match="reader 'parquet' is registered twice"):
        parts.register("parquet")(print)


def test_a_place_in_the_run_file_needs_no_registration():
    assert Registry("model").get("collections:OrderedDict").__name__ == "OrderedDict"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("parket", "unknown reader 'parket'; did you mean 'parquet'?"),
        ("xyz", "unknown reader 'xyz'; known: csv, parquet"),
        ("no_such_package.x:y", "reader 'no_such_package.x:y': there is no module 'no_such_package'"),
        ("collections:Nothing", "reader 'collections:Nothing': 'collections' has no 'Nothing'"),
        (
            "collections:OrderdDict",
            "reader 'collections:OrderdDict': 'collections' has no 'OrderdDict'; did you mean 'OrderedDict'?",
        ),
    ],
)
def test_a_name_that_is_not_known(name: str, message: str):
    parts: Registry[object] = Registry("reader", {"parquet": "a:b", "csv": "a:c"})

    with pytest.raises(ConfigError) as error:
        parts.get(name)

    assert str(error.value) == message
