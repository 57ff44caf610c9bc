"""Weights that come inside a package. They are read as files: the package's own code is never run."""

import hashlib
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from fieldstone.ports.embedder import EmbeddingFailed

INSTALL_AGAIN: Final = "Install the package again; in a clone of fieldstone, `make setup` does it."


def read_package_file(package: str, path: str, *, sha256: str) -> bytes:
    """The file's bytes. Other bytes would be another model, under the same name."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise EmbeddingFailed(f"The package {package}, which holds the model, is not installed.")
    try:
        content = (Path(spec.origin).parent / path).read_bytes()
    except OSError as error:
        raise EmbeddingFailed(
            f"The model's file {path} of {package} cannot be read: {error.strerror}. {INSTALL_AGAIN}"
        ) from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise EmbeddingFailed(f"The model's file {path} of {package} is not the one that is known. {INSTALL_AGAIN}")
    return content
