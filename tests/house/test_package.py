"""`pip install` brings what runs from the source tree: a wheel without its .sql files would fail only at the user's."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.house.sources import PACKAGE, ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [path] = folder.glob("fieldstone-*.whl")
    return zipfile.ZipFile(path)


def test_the_wheel_holds_every_file_of_the_package(wheel: zipfile.ZipFile) -> None:
    source = ROOT / PACKAGE
    files = {path.relative_to(source.parent).as_posix() for path in source.rglob("*") if is_content(path)}
    assert "fieldstone/py.typed" in files
    assert not files - set(wheel.namelist())


def test_the_wheel_brings_the_command_and_the_licence(wheel: zipfile.ZipFile) -> None:
    by_name = {Path(name).name: wheel.read(name).decode() for name in wheel.namelist() if ".dist-info/" in name}
    assert "fieldstone = fieldstone.cli.main:main" in by_name["entry_points.txt"]
    assert "License-Expression: Apache-2.0" in by_name["METADATA"]
    assert "Apache License" in by_name["LICENSE"]


def test_the_wheel_brings_the_model_and_its_licence(wheel: zipfile.ZipFile) -> None:
    names = {name for name in wheel.namelist() if "/wordllama-256." in name}
    assert names == {f"fieldstone/backends/models/wordllama-256.{end}" for end in ("model", "LICENSE")}


def test_the_base_install_asks_for_nothing_that_only_the_build_or_an_extra_needs(wheel: zipfile.ZipFile) -> None:
    [metadata] = [wheel.read(name).decode() for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    asked = re.findall(r"(?m)^Requires-Dist: ([\w-]+)(?!.*extra ==)", metadata)
    assert "numpy" in asked
    assert not {"wordllama", "tokenizers", "safetensors", "onnxruntime", "pydantic"} & set(asked)


def is_content(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts
