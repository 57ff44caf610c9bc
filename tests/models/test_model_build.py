"""The build makes the default embedder's model of wordllama's files, and of no others."""

from pathlib import Path

import pytest

import hatch_build
from fieldstone.backends.models import wordllama_pack
from fieldstone.backends.models.static import DIMENSION
from hatch_build import ModelHook


def hook(root: Path) -> ModelHook:
    (root / hatch_build.FOLDER).mkdir(parents=True, exist_ok=True)
    return ModelHook(str(root), {}, None, None, "", "wheel")  # type: ignore[arg-type]


def built(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (root / hatch_build.FOLDER).iterdir()}


def test_what_is_built_is_what_the_embedder_reads() -> None:
    assert (hatch_build.MODEL, hatch_build.MODEL_SHA256) == (wordllama_pack.PACK, wordllama_pack.PACK_SHA256)
    assert Path(wordllama_pack.__file__).parent.as_posix().endswith(hatch_build.FOLDER)
    pack = wordllama_pack.read_pack()
    assert pack.vectors.shape == (len(pack.tokens), DIMENSION)
    assert len(set(pack.tokens)) == len(pack.tokens)
    assert pack.tokens[:256] == [bytes([byte]) for byte in range(256)]


def test_beginnings_are_the_tokens_that_are_no_whole_characters() -> None:
    tokens = wordllama_pack.read_pack().tokens
    broken = [rank for rank, token in enumerate(tokens) if rank >= 256 and "\ufffd" in token.decode(errors="replace")]
    assert broken == list(wordllama_pack.BEGINNINGS)


def test_the_build_puts_the_model_and_its_licence_into_the_package(tmp_path: Path) -> None:
    hook(tmp_path).initialize("standard", {})
    made = built(tmp_path)
    assert made.keys() == {hatch_build.MODEL, hatch_build.LICENSE}
    assert made[hatch_build.MODEL] == Path(wordllama_pack.__file__).with_name(wordllama_pack.PACK).read_bytes()
    assert b"MIT License" in made[hatch_build.LICENSE]


def test_a_damaged_model_is_built_again(tmp_path: Path) -> None:
    place = tmp_path / hatch_build.FOLDER / hatch_build.MODEL
    building = hook(tmp_path)
    place.write_bytes(b"half of it")
    building.initialize("editable", {})
    assert hatch_build._sha256(place.read_bytes()) == hatch_build.MODEL_SHA256


def test_a_tree_that_has_the_model_builds_without_wordllama(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hook(tmp_path).initialize("standard", {})
    before = built(tmp_path)
    monkeypatch.setattr(hatch_build, "SOURCE", "no_such_package")
    hook(tmp_path).initialize("standard", {})
    assert built(tmp_path) == before


def test_a_build_without_wordllama_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hatch_build, "SOURCE", "no_such_package")
    with pytest.raises(RuntimeError, match=r"no_such_package, .* is not installed: see build-system\.requires"):
        hatch_build.model_bytes()


@pytest.mark.parametrize("known", ["WEIGHTS_SHA256", "TOKENIZER_SHA256", "MODEL_SHA256"])
def test_files_that_are_not_the_known_ones_make_no_model(known: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hatch_build, known, "0" * 64)
    with pytest.raises(RuntimeError, match=r"not the known one|another one"):
        hatch_build.model_bytes()
