"""Setup looks at files, not at version numbers: what is missing or cut short is found."""

import base64
import hashlib
from pathlib import Path

import pytest

from installed_files import SitePackages
from lock_file import Pin, read_lock

WATER = Pin("water-wheel", "1.2.0")


def install(folder: Path, name: str = "Water_Wheel", version: str = "1.2.0") -> Path:
    """A package of one module, as pip leaves it."""
    module = folder / "water_wheel.py"
    module.write_text("turns = 7\n")
    digest = base64.urlsafe_b64encode(hashlib.sha256(module.read_bytes()).digest()).rstrip(b"=").decode()
    record_folder = folder / f"{name}-{version}.dist-info"
    record_folder.mkdir()
    (record_folder / "RECORD").write_text(
        f"water_wheel.py,sha256={digest},{module.stat().st_size}\n{record_folder.name}/RECORD,,\n"
    )
    return record_folder


def damages(folder: Path, compare_contents: bool = False) -> list[str]:
    return [str(damage) for damage in SitePackages(folder).damages([WATER], compare_contents)]


def test_a_whole_package_has_no_damage(tmp_path: Path):
    install(tmp_path)

    assert damages(tmp_path, compare_contents=True) == []


def test_a_package_that_is_not_there_is_missing(tmp_path: Path):
    assert damages(tmp_path) == ["water-wheel is missing"]


def test_another_version_is_named(tmp_path: Path):
    install(tmp_path, version="1.1.0")

    assert damages(tmp_path) == ["water-wheel is 1.1.0, not 1.2.0"]


def test_other_contents_of_the_same_size_are_found_when_contents_are_compared(tmp_path: Path):
    install(tmp_path)
    (tmp_path / "water_wheel.py").write_text("turns = 8\n")

    assert damages(tmp_path) == []
    assert damages(tmp_path, compare_contents=True) == ["water-wheel is torn at water_wheel.py"]


@pytest.mark.parametrize("name", ["water_wheel.py", "Water_Wheel-1.2.0.dist-info/RECORD"])
def test_a_file_that_is_not_there_is_found(tmp_path: Path, name: str):
    install(tmp_path)
    (tmp_path / name).unlink()

    assert damages(tmp_path) == [f"water-wheel is torn at {name}"]


def test_two_versions_at_once_are_torn(tmp_path: Path):
    install(tmp_path)
    install(tmp_path, version="1.1.0")

    assert damages(tmp_path) == ["water-wheel is there 2 times"]


def test_a_lock_is_read_for_one_platform(tmp_path: Path):
    lock = tmp_path / "some.lock"
    lock.write_text(
        "# comment\n"
        "Water_Wheel==1.2.0  # why\n\n"
        'mill==2.0+stone ; sys_platform == "linux"\n'
        'mill==2.0 ; sys_platform != "linux"\n'
    )

    assert read_lock(lock, platform="linux") == [WATER, Pin("mill", "2.0+stone")]
    assert read_lock(lock, platform="darwin") == [WATER, Pin("mill", "2.0")]


def test_a_line_that_pins_nothing_is_refused(tmp_path: Path):
    lock = tmp_path / "some.lock"
    lock.write_text("mill==2.0\nwater-wheel>=1\n")

    with pytest.raises(ValueError, match=r"some\.lock: line 2: 'water-wheel>=1' is not name==version"):
        read_lock(lock)
