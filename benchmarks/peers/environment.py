"""The peers' own virtual environment, and how installed size is measured, theirs and ours.

Standard library only: it runs before anything is installed.
`python -m benchmarks.peers.environment` sets all of it up and prints mem0's size.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv-bench"
REQUIREMENTS = ROOT / "requirements" / "bench.txt"

INSTALL_TIMEOUT_S = 1_800  # about 200 MB over a slow line

# They come with the environment, not with what is installed into it.
INSTALLERS = frozenset({"pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils-precedence.pth"})


class Installed(NamedTuple):
    """What is in an environment, in MB: the files that come, and these with what pip has Python compile of them."""

    files: float
    compiled: float


def bench_python() -> Path:
    """The interpreter of `.venv-bench`: made at first use, and again when requirements/bench.txt has changed."""
    stamp = VENV / ".ready"
    if not stamp.exists() or stamp.read_text() != _fingerprint():
        print(f"Setting up {VENV.name} (once, some minutes) ...", file=sys.stderr)
        _make_venv(VENV)
        (VENV / ".gitignore").write_text("*\n")
        _pip_install(VENV, ["--require-hashes", "--requirement", str(REQUIREMENTS)])
        stamp.write_text(_fingerprint())  # last: an interrupted set-up is simply done again
    return _python(VENV)


def mem0_installed() -> Installed:
    """The size of a fresh environment with only `mem0ai`, at the pinned versions; measured once per pin."""
    bench_python()
    kept = VENV / ".mem0-installed"
    if not kept.exists():
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as constraints:
            # pip takes hashes only for a complete list, and this one is complete for two peers, not for one.
            # The versions suffice: nothing in that environment is ever run.
            constraints.write("\n".join(re.findall(r"^[\w.-]+==[^\s;]+", REQUIREMENTS.read_text(), re.MULTILINE)))
            constraints.flush()
            size = fresh_install(["--constraint", constraints.name, "mem0ai"])
        kept.write_text(f"{size.files:.1f} {size.compiled:.1f}")
    files, compiled = map(float, kept.read_text().split())
    return Installed(files, compiled)


def fresh_install(pip_arguments: Sequence[str]) -> Installed:
    """`pip install` with these arguments into an empty environment: what it puts there."""
    VENV.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=VENV, prefix="fresh-") as directory:
        fresh = Path(directory) / "venv"
        _make_venv(fresh)
        _pip_install(fresh, pip_arguments)
        return installed_in(site_packages(fresh))


def installed_in(site_packages: Path) -> Installed:
    """As `du -sm` counts (blocks on disk, 1 MB = 2**20 bytes), less pip and setuptools."""
    files_bytes = compiled_bytes = 0
    seen: set[tuple[int, int]] = set()
    for entry in site_packages.iterdir():
        if entry.name.split("-")[0] in INSTALLERS or entry.name in INSTALLERS:
            continue
        inside = entry.rglob("*") if entry.is_dir() else ()
        for path in (entry, *inside):
            stat = path.lstat()
            if (stat.st_dev, stat.st_ino) not in seen:  # a hard link takes no room of its own
                seen.add((stat.st_dev, stat.st_ino))
                compiled_bytes += stat.st_blocks * 512
                files_bytes += 0 if "__pycache__" in path.parts else stat.st_blocks * 512
    return Installed(files_bytes / 2**20, compiled_bytes / 2**20)


def site_packages(venv: Path) -> Path:
    (found,) = (venv / "lib").glob("python3.*/site-packages")
    return found


def _fingerprint() -> str:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return f"{version} {hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()}\n"


def _python(venv: Path) -> Path:
    return venv / "bin" / "python"


def _make_venv(venv: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)], check=True, timeout=INSTALL_TIMEOUT_S)


def _pip_install(venv: Path, arguments: Sequence[str]) -> None:
    # Twice quiet: errors are still shown, warnings about the reader's own pip settings are not.
    pip = [str(_python(venv)), "-m", "pip", "--quiet", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", *arguments], check=True, timeout=INSTALL_TIMEOUT_S)


if __name__ == "__main__":
    bench_python()
    print(f"mem0ai alone: {mem0_installed().compiled:.1f} MB")
