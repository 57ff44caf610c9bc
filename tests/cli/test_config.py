"""`fieldstone config show`, and which store or server a command is about."""

from pathlib import Path

import pytest

from fieldstone.cli.door import settings_for
from fieldstone.cli.options import Where
from fieldstone.settings import SETTING_HELP, BadSettings
from tests.cli.running import answer, done, refused


def test_every_setting_is_shown_with_value_source_and_purpose() -> None:
    shown = answer("config", "show")
    assert {name: setting["help"] for name, setting in shown.items()} == dict(SETTING_HELP)
    assert shown["port"] == {"value": 8420, "source": "default", "help": SETTING_HELP["port"]}


def test_a_person_reads_where_a_value_comes_from() -> None:
    Path("fieldstone.toml").write_text('port = 9000\nmemory_types = ["rumour"]\n')
    shown = done("config", "show", "--config", "fieldstone.toml", env={"FIELDSTONE_FIELD": "tea"})
    assert "port = 9000  (file fieldstone.toml)\n" in shown
    assert "memory_types = rumour  (file fieldstone.toml)\n" in shown
    assert "field = tea  (variable FIELDSTONE_FIELD)\n" in shown
    assert "url = not set  (default)\n" in shown
    assert "log_reads = true  (default)\n" in shown


def test_a_password_in_an_address_is_not_shown() -> None:
    shown = done("config", "show", env={"FIELDSTONE_URL": "http://me:hush@127.0.0.1:1"})
    assert "http://***@127.0.0.1:1" in shown
    assert "hush" not in shown
    assert "hush" not in refused("status", "--url", "http://me:hush@127.0.0.1:1")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("port = 'x'", "port (file fieldstone.toml) is wrong"),
        ("prot = 1", "Unknown settings in fieldstone.toml: prot"),
        ("port = ", "is not valid TOML"),
    ],
)
def test_a_bad_settings_file_is_told_in_a_sentence(text: str, said: str) -> None:
    Path("fieldstone.toml").write_text(text)
    assert said in refused("config", "show", "--config", "fieldstone.toml")
    assert said in refused("status", "--config", "fieldstone.toml")


def test_a_settings_file_that_is_not_there_is_told_in_a_sentence() -> None:
    assert "gone.toml cannot be read" in refused("status", "--config", "gone.toml")


HERE, THERE = "http://127.0.0.1:1", "http://127.0.0.1:2"


@pytest.mark.parametrize(
    ("where", "environ", "file", "url"),
    [
        (Where(), {}, "", None),
        (Where(url=HERE), {"FIELDSTONE_DB": "a.db"}, "", HERE),
        (Where(db="a.db"), {"FIELDSTONE_URL": HERE}, "", None),
        (Where(db=HERE), {"FIELDSTONE_URL": THERE}, "", HERE),
        (Where(), {"FIELDSTONE_URL": HERE, "FIELDSTONE_DB": "a.db"}, "", HERE),
        (Where(), {"FIELDSTONE_DB": "a.db"}, f"url = '{HERE}'", None),
        (Where(), {}, f"url = '{HERE}'\ndb = 'a.db'", HERE),
        (Where(), {"FIELDSTONE_DB": HERE}, "", HERE),
    ],
)
def test_what_is_said_closer_to_the_command_decides(
    where: Where, environ: dict[str, str], file: str, url: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    Path("fieldstone.toml").write_text(file)
    assert settings_for(where._replace(config=Path("fieldstone.toml"))).values.url == url


@pytest.mark.parametrize("url", ["127.0.0.1:8420", "ftp://127.0.0.1", "http://", "http://a:99999", "http://[::1"])
def test_an_address_that_is_none_is_told_in_a_sentence(url: str) -> None:
    with pytest.raises(BadSettings, match="is not a server's address"):
        settings_for(Where(url=url))


def test_a_store_and_a_server_at_once_is_a_usage_error() -> None:
    assert "exclude each other" in refused("status", "--db", "a.db", "--url", HERE, exit_code=2)
