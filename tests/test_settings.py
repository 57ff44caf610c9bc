"""Settings that do not fit together are told before anything starts, and the key is told nowhere."""

from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins

from fieldstone.settings import BadSettings, Settings, load_settings
from fieldstone.wiring import open_house, open_local_field

URL = "http://127.0.0.1:11434/v1"
ENDPOINT = {"embedder": "openai", "embedder_url": URL, "embedder_model": "bag"}


def loaded(**given: Any) -> Settings:
    return load_settings(environ={}, given=given).values


def from_environment(**given: str) -> Settings:
    return load_settings(environ={f"FIELDSTONE_{name.upper()}": value for name, value in given.items()}).values


def test_without_a_word_the_embedder_is_the_one_in_the_package() -> None:
    settings = loaded()
    assert settings.embedder == "static"
    assert (settings.enrichment_timeout_ms, settings.detection_timeout_ms) == (50, 50)


def test_an_endpoint_is_read_from_the_environment() -> None:
    settings = from_environment(**ENDPOINT, embedder_key="k", embedder_batch="8", embedder_dimension="256")
    assert (settings.embedder, settings.embedder_url, settings.embedder_model) == ("openai", URL, "bag")
    assert (settings.embedder_batch, settings.embedder_dimension) == (8, 256)
    assert settings.embedder_key is not None
    assert settings.embedder_key.reveal() == "k"


def test_a_key_is_in_nothing_that_prints_the_settings() -> None:
    settings = loaded(**ENDPOINT, embedder_key="hush-hush")
    assert "hush" not in repr(settings)
    assert to_builtins(settings, enc_hook=str)["embedder_key"] == "***"
    with pytest.raises(TypeError):  # who does not say how to show a secret shows nothing
        to_builtins(settings)


@pytest.mark.parametrize("key", ["hush hush", "hush\n", "hüsh", ""])
def test_a_key_that_no_header_can_carry_is_refused_and_not_repeated(key: str) -> None:
    with pytest.raises(BadSettings, match="embedder_key") as caught:
        loaded(**ENDPOINT, embedder_key=key)
    assert "sh" not in str(caught.value).replace("characters", "")


def test_a_key_that_is_no_text_is_refused_and_not_repeated() -> None:
    with pytest.raises(BadSettings, match="embedder_key") as caught:
        loaded(**ENDPOINT, embedder_key=481_516)
    assert "481" not in str(caught.value)


@pytest.mark.parametrize("embedder", ["static", "onnx"])
@pytest.mark.parametrize(
    ("name", "value"),
    [("embedder_url", URL), ("embedder_model", "bag"), ("embedder_key", "k"), ("embedder_dimension", 8)],
)
def test_an_endpoint_that_would_not_be_used_is_refused(embedder: str, name: str, value: Any) -> None:
    with pytest.raises(BadSettings, match=rf"{name} .* is for embedder = openai, and embedder is {embedder}"):
        loaded(**{"embedder": embedder, name: value})


def test_none_turns_an_endpoint_off_without_forgetting_it() -> None:
    assert loaded(**{**ENDPOINT, "embedder": "none"}).embedder == "none"


@pytest.mark.parametrize("name", ["embedder_url", "embedder_model"])
def test_an_endpoint_needs_an_address_and_a_model(name: str) -> None:
    with pytest.raises(BadSettings, match=f"embedder = openai .* needs {name}"):
        loaded(**{**ENDPOINT, name: None})


@pytest.mark.parametrize("url", ["127.0.0.1:1", "ftp://a/v1", "http://", "http://a:99999", "http://[::1", "not a url"])
def test_an_endpoint_without_a_url_is_refused(url: str) -> None:
    with pytest.raises(BadSettings, match=r"embedder_url .* is not a URL"):
        loaded(**{**ENDPOINT, "embedder_url": url})


@pytest.mark.parametrize("url", ["http://me:hush@a/v1", "http://a/v1?key=hush", "http://a/v1#hush"])
def test_a_url_that_holds_a_secret_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(BadSettings, match=r"embedder_url .* holds more than an address") as caught:
        loaded(**{**ENDPOINT, "embedder_url": url})
    assert "hush" not in str(caught.value)


def test_an_unknown_embedder_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(BadSettings, match="it takes static or onnx or openai or none"):
        from_environment(embedder="magic")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('redaction = "refuze"', "at `$[...].redaction`: it takes rewrite or refuse."),
        ('redacton = "refuse"', "unknown field `redacton`"),
        ('vouch_authority = "six"', "Expected `int | null`, got `str` - at `$[...].vouch_authority`."),
    ],
)
def test_of_a_table_it_is_told_what_is_wrong_in_it(line: str, sentence: str, tmp_path: Path) -> None:
    config = tmp_path / "fieldstone.toml"
    config.write_text(f"[tenants.acme]\n{line}\n")
    with pytest.raises(BadSettings) as caught:
        load_settings(config=config, environ={})
    assert sentence in str(caught.value)


async def test_a_file_of_signing_keys_that_is_not_there_is_told_at_the_start(tmp_path: Path) -> None:
    jwks = str(tmp_path / "jwks.json")
    settings = Settings(db="memory:", jwt_jwks=jwks, jwt_issuer="https://id.example.org", jwt_audience="fieldstone")
    with pytest.raises(BadSettings, match="there is no file"):
        async with open_house(settings):
            pass


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("embedder_batch", 0),
        ("embedder_batch", 2_049),
        ("embedder_dimension", 0),
        ("embedder_timeout_ms", 0),
        ("enrichment_timeout_ms", -1),
        ("detection_timeout_ms", 60_001),
    ],
)
def test_a_bound_is_kept(name: str, value: int) -> None:
    with pytest.raises(BadSettings, match=f"{name} .* is out of its range"):
        loaded(**{**ENDPOINT, name: value})


@pytest.mark.parametrize("weights", [{"lexcal": 0.5}, {"lexical": -0.1}, {"recency": nan}, {"role": inf}])
async def test_a_weight_that_could_not_count_is_refused_before_the_store_is_opened(
    weights: dict[str, float], tmp_path: Path
) -> None:
    settings = load_settings(environ={}, given={"db": str(tmp_path / "field.db"), "weights": weights}).values
    with pytest.raises(BadSettings, match=next(iter(weights))):
        await open_local_field(settings)
    assert not (tmp_path / "field.db").exists()
