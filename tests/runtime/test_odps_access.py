"""Keys of the table service, from a file or from variables."""

from pathlib import Path

import pytest

from penstock.config.errors import ConfigError
from penstock.runtime.odps_access import OdpsAccess

VARIABLES = {"ODPS_ACCESS_ID": "id", "ODPS_ACCESS_KEY": "secret", "ODPS_ENDPOINT": "http://service/api"}


def test_variables() -> None:
    assert OdpsAccess.from_environment(VARIABLES) == OdpsAccess("id", "secret", "http://service/api")


def test_a_file_comes_first_and_variables_fill_its_gaps(tmp_path: Path) -> None:
    file = tmp_path / "odps_conf"
    file.write_text("# keys of the shop\nproject_name = shop\naccess_id = other\naccess_key = a=b\n")
    environment = {**VARIABLES, "ODPS_CONFIG_FILE_PATH": str(file)}

    assert OdpsAccess.from_environment(environment) == OdpsAccess("other", "a=b", "http://service/api")


def test_the_key_is_not_shown() -> None:
    assert "secret" not in repr(OdpsAccess.from_environment(VARIABLES))


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    file = tmp_path / "odps_conf"
    file.write_text("access_id=id\n")

    with pytest.raises(
        ConfigError, match=r"ODPS_ENDPOINT is not set; set ODPS_ACCESS_ID, ODPS_ACCESS_KEY, ODPS_END"
    ):
        OdpsAccess.from_environment({**VARIABLES, "ODPS_ENDPOINT": ""})
    with pytest.raises(ConfigError, match=r"odps_conf has no access_key; set"):
        OdpsAccess.from_environment({"ODPS_CONFIG_FILE_PATH": str(file)})


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(
        ConfigError, match=r"ODPS_CONFIG_FILE_PATH is /nowhere/conf, which cannot be read: No such"
    ):
        OdpsAccess.from_environment({"ODPS_CONFIG_FILE_PATH": "/nowhere/conf"})
