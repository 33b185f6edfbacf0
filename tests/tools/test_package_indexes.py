"""The CPU build of torch is found with any pip: on the configured index, or else on PyTorch's public one.

Both are small package indexes on loopback here, and the wheel holds one empty module.
"""

import hashlib
import http.server
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

import setup_venv
from lock_file import Pin

TORCH = Pin("torch", "2.13.0+cpu")


class Index:
    """A package index, as a folder that is served on loopback."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[str] = []
        (folder / "torch").mkdir(parents=True)
        (folder / "torch" / "index.html").write_text("<!DOCTYPE html>")
        index = self

        class Handler(http.server.SimpleHTTPRequestHandler):
            def do_GET(self) -> None:
                index.asked.append(self.path)
                super().do_GET()

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), partial(Handler, directory=str(folder))
        )
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def offer(self, pin: Pin) -> None:
        """Have a wheel of this version."""
        name = f"{pin.name}-{pin.version}-py3-none-any.whl"
        record = f"{pin.name}-{pin.version}.dist-info"
        with zipfile.ZipFile(self.folder / "torch" / name, "w") as wheel:
            wheel.writestr(f"{pin.name}/__init__.py", "")
            wheel.writestr(
                f"{record}/METADATA", f"Metadata-Version: 2.1\nName: torch\nVersion: {pin.version}\n"
            )
            wheel.writestr(
                f"{record}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            wheel.writestr(f"{record}/RECORD", "")
        digest = hashlib.sha256((self.folder / "torch" / name).read_bytes()).hexdigest()
        link = name.replace("+", "%2B")
        (self.folder / "torch" / "index.html").write_text(f'<a href="{link}#sha256={digest}">{name}</a>')

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A virtual environment of its own, which setup installs into."""
    folder = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(setup_venv, "PYTHON", folder / "bin" / "python")
        yield folder


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """What pip's own settings name, and they name nothing else."""
    index = Index(tmp_path / "configured")
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", index.address)
    yield index
    index.stop()


@pytest.fixture
def public(tmp_path: Path) -> Iterator[Index]:
    """Stands where PyTorch's public index is."""
    index = Index(tmp_path / "public")
    yield index
    index.stop()


def is_installed(venv: Path) -> bool:
    return any(venv.glob("lib/python*/site-packages/torch-2.13.0+cpu.dist-info/RECORD"))


def test_only_the_public_index_has_it(
    venv: Path, configured: Index, public: Index, capfd: pytest.CaptureFixture[str]
):
    configured.offer(Pin("torch", "2.13.0"))  # the CUDA build, which must not be taken
    public.offer(TORCH)

    setup_venv.install_torch(TORCH, public.address)

    assert is_installed(venv)
    line = f"setup: pip did not get torch==2.13.0+cpu from its own indexes; trying {public.address}"
    assert line in capfd.readouterr().out.splitlines()


def test_the_configured_index_has_it(venv: Path, configured: Index, public: Index):
    configured.offer(TORCH)

    setup_venv.install_torch(TORCH, public.address)

    assert any(path.endswith(".whl") for path in configured.asked)
    assert public.asked == []


def test_neither_has_it(venv: Path, configured: Index, public: Index):
    with pytest.raises(setup_venv.SetupError) as error:
        setup_venv.install_torch(TORCH, public.address)

    assert str(error.value).startswith(
        f"neither the indexes that pip is configured with nor {public.address} gave torch==2.13.0+cpu for Python 3."
    )


@pytest.mark.parametrize("version", ["3.10", "3.14"])
def test_another_python_is_refused_in_one_line_before_anything_is_made(tmp_path: Path, version: str):
    major, minor = version.split(".")
    program = f"""
import runpy, sys
sys.version_info = ({major}, {minor}, 0, "final", 0)
runpy.run_path({setup_venv.__file__!r}, run_name="__main__")
"""

    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert done.stderr == (
        f"setup: Penstock needs Python 3.11, 3.12 or 3.13 and {sys.executable} is {version}; "
        "name another one: make setup PYTHON=python3.11\n"
    )
    assert list(tmp_path.iterdir()) == []
