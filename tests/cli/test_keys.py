"""`fieldstone keys`"""

import json
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from fieldstone.servers.auth.keys import Keys
from fieldstone.settings import load_settings
from fieldstone.wiring import opened_keys
from tests.cli.running import answer, done, invoke, process, record, refused, served
from tests.servers.auth.tokens import with_secret

STORE = ("--db", "team.db")


@contextmanager
def keys_of(db: str) -> Iterator[Keys]:
    with opened_keys(load_settings(given={"db": db}).values) as keys:
        yield keys


def tenant_of(key: str, db: str = "team.db") -> str:
    with keys_of(db) as keys:
        return keys.caller(key).tenant


def listed(*more: str) -> list[Any]:
    found: list[Any] = answer("keys", "list", *STORE, *more)["keys"]
    return found


def test_a_new_key_is_alone_on_stdout_and_opens_its_tenant() -> None:
    result = invoke("keys", "create", "--tenant", "acme", *STORE)
    assert result.exit_code == 0, result.output
    [key] = result.stdout.splitlines()
    assert tenant_of(key) == "acme"
    [found] = listed()
    assert result.stderr == f"This is {found['id']}. It is shown this once: keep it where secrets are kept.\n"


def test_json_gives_id_and_key() -> None:
    made = answer("keys", "create", "--tenant", "acme", *STORE)
    assert made.keys() == {"id", "key"}
    assert tenant_of(made["key"]) == "acme"
    assert listed()[0]["id"] == made["id"]


def test_a_key_has_what_was_asked_for() -> None:
    wishes = ("--authority", "6", "--agent", "ada", "--agent", "ben", "--rate", "2.5", "--quota-units", "100")
    answer("keys", "create", "--tenant", "acme", *wishes, "--expires", "2099-01-31", *STORE)
    [found] = listed()
    assert {name: found[name] for name in ("tenant", "authority", "agents", "rate_per_second", "quota_units")} == {
        "tenant": "acme",
        "authority": 6,
        "agents": ["ada", "ben"],
        "rate_per_second": 2.5,
        "quota_units": 100,
    }
    assert (found["status"], found["expires_at"]) == ("active", "2099-01-31T00:00:00.000Z")


@pytest.mark.parametrize(
    ("text", "span"),
    [("90m", timedelta(minutes=90)), ("12h", timedelta(hours=12)), ("30d", timedelta(30)), ("2w", timedelta(14))],
)
def test_a_span_is_counted_from_now(text: str, span: timedelta) -> None:
    before = datetime.now(UTC)
    answer("keys", "create", "--tenant", "acme", "--expires", text, *STORE)
    expires = datetime.fromisoformat(listed()[0]["expires_at"])
    assert before + span - timedelta(milliseconds=1) <= expires <= datetime.now(UTC) + span


@pytest.mark.parametrize("text", ["2099-01-31T12:00:00+02:00", "2099-01-31T10:00Z", "2099-01-31T10:00"])
def test_a_moment_may_name_its_zone_and_is_else_utc(text: str) -> None:
    answer("keys", "create", "--tenant", "acme", "--expires", text, *STORE)
    assert listed()[0]["expires_at"] == "2099-01-31T10:00:00.000Z"


@pytest.mark.parametrize(
    ("wrong", "exit_code", "says"),
    [
        (("--expires", "soon"), 2, "neither a span such as 30d"),
        (("--expires", "30"), 2, "neither a span such as 30d"),
        (("--expires", "999999w"), 2, "neither a span such as 30d"),
        (("--expires", "2001-01-31"), 1, "expires must be in the future"),
        (("--authority", "11"), 2, "--authority"),
        (("--rate", "0"), 1, "rate_per_second must be a number above 0"),
        (("--rate", "nan"), 1, "rate_per_second must be a number above 0"),
        (("--quota-units", "-1"), 2, "--quota-units"),
        (("--agent", ""), 1, "agents must be names"),
        (("--tenant", " "), 1, "tenant must be a name"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_wrong_wish_is_told_and_makes_nothing(wrong: tuple[str, ...], exit_code: int, says: str) -> None:
    stderr = refused("keys", "create", "--tenant", "acme", *wrong, *STORE, exit_code=exit_code)
    assert says in " ".join(stderr.split())
    assert list(Path().iterdir()) == []


def test_a_key_needs_a_tenant() -> None:
    assert "--tenant" in refused("keys", "create", *STORE, exit_code=2)


def test_a_list_is_for_reading_and_shows_nothing_that_opens_anything() -> None:
    made = answer("keys", "create", "--tenant", "acme", "--expires", "2099-01-31", "--agent", "ada", *STORE)
    other = answer("keys", "create", "--tenant", "other", "--authority", "10", *STORE)
    done("keys", "revoke", other["id"], *STORE)
    lines = done("keys", "list", *STORE).splitlines()
    assert [line.split() for line in lines] == [
        ["id", "tenant", "authority", "status", "expires", "agents"],
        [made["id"], "acme", "4", "active", "2099-01-31T00:00:00.000Z", "ada"],
        [other["id"], "other", "10", "revoked", "never", "any"],
    ]
    assert [found["id"] for found in listed("--tenant", "acme")] == [made["id"]]
    shown = "".join(lines) + json.dumps(listed())
    assert made["key"][21:] not in shown
    assert "digest" not in shown
    assert "salt" not in shown


def test_an_expired_key_is_listed_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    answer("keys", "create", "--tenant", "acme", "--expires", "1h", *STORE)
    monkeypatch.setattr("fieldstone.backends.system.SystemClock.now_ms", lambda _: 4_102_444_800_000)
    assert [found["status"] for found in listed()] == ["expired"]


def test_an_expired_key_is_rotated_with_a_new_end_and_not_without(monkeypatch: pytest.MonkeyPatch) -> None:
    made = answer("keys", "create", "--tenant", "acme", "--expires", "2030-01-01", *STORE)
    monkeypatch.setattr("fieldstone.backends.system.SystemClock.now_ms", lambda _: 4_102_444_800_000)  # 2100
    told = refused("keys", "rotate", made["id"], *STORE)
    assert "error INVALID_TRANSITION: The key is expired." in told
    assert "keys rotate ID --expires 30d" in told
    assert answer("keys", "rotate", made["id"], "--expires", "2100-02-01", *STORE)["id"] == made["id"]
    assert [(found["status"], found["expires_at"][:10]) for found in listed()] == [("active", "2100-02-01")]


def test_a_rotated_key_keeps_its_id_and_a_revoked_one_is_not_rotated() -> None:
    made = answer("keys", "create", "--tenant", "acme", *STORE)
    rotated = answer("keys", "rotate", made["id"], *STORE)
    assert rotated["id"] == made["id"]
    assert rotated["key"] != made["key"]
    assert tenant_of(rotated["key"]) == "acme"
    assert tenant_of(done("keys", "rotate", made["id"], *STORE).strip()) == "acme"
    assert answer("keys", "revoke", made["id"], *STORE) == {"id": made["id"], "status": "revoked"}
    assert done("keys", "revoke", made["id"], *STORE) == f"{made['id']} is revoked.\n"
    assert "error INVALID_TRANSITION: The key is revoked." in refused("keys", "rotate", made["id"], *STORE)


def test_an_unknown_key_is_told_in_a_sentence() -> None:
    answer("keys", "create", "--tenant", "acme", *STORE)
    for verb in ("revoke", "rotate"):
        assert refused("keys", verb, "key-0", *STORE).startswith("error NOT_FOUND: There is no such key.")


def test_a_store_without_keys_says_so_and_a_mistyped_path_is_refused_and_stays_away() -> None:
    for command in (("list",), ("revoke", "key-0"), ("rotate", "key-0")):
        assert "There is no store at team.db" in refused("keys", *command, *STORE)
    assert list(Path().iterdir()) == []
    record("Tea is hot")
    assert invoke("keys", "list", *STORE).stderr == "There are no keys.\n"
    assert listed() == []
    assert "no-such-folder" in refused("keys", "create", "--tenant", "acme", "--db", "no-such-folder/team.db")


def test_a_store_in_memory_has_no_keys_for_a_command() -> None:
    assert "A store in memory has no keys" in refused("keys", "create", "--tenant", "acme", "--db", "memory:")


def test_nobody_else_can_read_the_file_and_the_memory_holds_none_of_it() -> None:
    record("Tea is hot")
    made = answer("keys", "create", "--tenant", "acme", *STORE)
    assert stat.S_IMODE(Path("team.db-access").stat().st_mode) == 0o600
    secret = made["key"][21:].encode()
    for file in Path().iterdir():
        assert secret not in file.read_bytes()
    assert made["id"].encode() not in Path("team.db").read_bytes()
    assert made["id"] not in done("export", *STORE)


def test_names_that_play_tricks_on_a_terminal_are_refused() -> None:
    refused("keys", "create", "--tenant", "a\x1b[2Jb", *STORE)


def test_a_running_server_notices_every_change_at_once() -> None:
    with served("team.db") as url:
        assert ask(url, None) == 200
        first = answer("keys", "create", "--tenant", "local", *STORE)
        assert [ask(url, None), ask(url, with_secret(first["key"])), ask(url, first["key"])] == [401, 401, 200]
        second = answer("keys", "rotate", first["id"], *STORE)
        assert [ask(url, first["key"]), ask(url, second["key"])] == [401, 200]
        done("keys", "revoke", first["id"], *STORE)
        assert [ask(url, second["key"]), ask(url, None)] == [401, 401]


def test_through_a_server_an_operators_key_does_the_same() -> None:
    operator = answer("keys", "create", "--tenant", "local", "--authority", "10", *STORE)
    with served("team.db") as url:
        there = ("--url", url)
        env = {"FIELDSTONE_KEY": operator["key"]}
        wishes = ("--agent", "ada", "--expires", "2099-01-31", "--rate", "5", "--quota-units", "7")
        made = answer("keys", "create", "--tenant", "local", *wishes, *there, env=env)
        assert ask(url, made["key"]) == 200
        found = answer("keys", "list", *there, env=env)["keys"]
        assert found == listed()
        assert [key["id"] for key in found] == [operator["id"], made["id"]]
        rotated = answer("keys", "rotate", made["id"], "--expires", "2099-02-28", *there, env=env)
        assert listed()[-1]["expires_at"].startswith("2099-02-28")
        assert [ask(url, made["key"]), ask(url, rotated["key"])] == [401, 200]
        assert done("keys", "revoke", made["id"], *there, env=env) == f"{made['id']} is revoked.\n"
        assert ask(url, rotated["key"]) == 401
        assert "error NOT_FOUND" in refused("keys", "revoke", "key-0/../x", *there, env=env)
        assert "error UNAUTHENTICATED" in refused("keys", "list", *there)
        standard = answer("keys", "create", "--tenant", "local", *STORE)
        for command in (("list",), ("create", "--tenant", "local"), ("revoke", operator["id"])):
            assert "error FORBIDDEN" in refused("keys", *command, *there, env={"FIELDSTONE_KEY": standard["key"]})


def test_a_server_that_is_not_there_is_told_in_a_sentence() -> None:
    assert "The server cannot be used" in refused("keys", "list", "--url", "http://127.0.0.1:9")


def test_the_key_can_be_piped_on() -> None:
    made = process("keys", "create", "--tenant", "acme", *STORE)
    assert made.returncode == 0, made.stderr
    assert tenant_of(made.stdout.removesuffix("\n")) == "acme"


def ask(url: str, key: str | None) -> int:
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    return httpx.get(f"{url}/v1/field/status", headers=headers).status_code


def test_a_tenant_without_keys_is_named_where_others_have_some() -> None:
    done("keys", "create", "--tenant", "acme", *STORE)
    assert invoke("keys", "list", "--tenant", "acmee", *STORE).stderr == "Tenant 'acmee' has no keys.\n"


def test_what_an_operator_may_not_ask_of_a_server_says_what_to_do() -> None:
    record("Something")
    key = done("keys", "create", "--tenant", "acme", "--authority", "10", *STORE).strip()
    with served("team.db") as url:
        said = refused("keys", "create", "--tenant", "umbra", "--url", url, env={"FIELDSTONE_KEY": key})
        assert "`fieldstone keys create --tenant NAME --db STORE`" in said
        wanted = {"tenant": "acme", "expires": "tomorrow"}
        answered = httpx.post(f"{url}/v1/keys", json=wanted, headers={"Authorization": f"Bearer {key}"})
    assert "not a time such as 2027-01-31T00:00:00Z - at `$.expires`" in answered.json()["message"]
