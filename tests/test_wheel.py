"""What is installed works without the repository: the wheel holds every file that the package reads."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the contents of the wheel, built from a copy so that nothing is written beside the sources."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    kept = ("pyproject.toml", "README.md", "LICENSE", "costmodel")
    copy = folder / "sources"
    copy.mkdir()
    for name in kept:
        subprocess.run(["cp", "-r", REPOSITORY / name, copy / name], check=True)
    subprocess.run([*command, "--wheel-dir", folder, copy], check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "installed")
    return folder / "installed"


def run(installed: Path, *arguments: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(installed)}
    command = [sys.executable, "-W", "error", *arguments]
    ran = subprocess.run(command, cwd=installed.parent, env=environment, capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    return ran.stdout


def test_importing_is_silent_and_finds_the_wheel(installed: Path) -> None:
    where = Path(run(installed, "-c", "import costmodel; print(costmodel.__file__)").strip())
    assert where.is_relative_to(installed)
    assert run(installed, "-c", "import costmodel") == ""


@pytest.mark.parametrize(
    "arguments",
    ["tour", "size llama-3-8b --on h100-sxm --calibrated vllm", "evidence --hardware a100", "explore --out page.html"],
)
def test_commands_find_their_data(installed: Path, arguments: str) -> None:
    assert run(installed, "-m", "costmodel", *arguments.split())


def test_nothing_but_the_package_is_installed(installed: Path) -> None:
    assert {path.name.split("-")[0] for path in installed.iterdir()} == {"costmodel"}
