"""`fieldstone secrets`"""

import secrets

import httpx

from tests.cli.running import answer, done, invoke, record, refused, served

HERE = ("--db", "team.db")


def value() -> str:
    return secrets.token_hex(24)


def test_adding_and_removing_say_in_json_what_they_did() -> None:
    record("Something")
    told = answer("secrets", "add", "db-password", *HERE, input=value())
    assert told == {"id": "db-password", "scope": {"tenant": True}, "weak": False}
    told = answer("secrets", "add", "ci-token", "--run", "4711", *HERE, input="aaaaaaaaaa")
    assert told == {"id": "ci-token", "scope": {"run": "4711"}, "weak": True}
    assert [each["id"] for each in answer("secrets", "list", *HERE)["secrets"]] == ["ci-token", "db-password"]
    assert answer("secrets", "remove", "ci-token", *HERE) == {"id": "ci-token", "status": "forgotten"}
    assert [each["id"] for each in answer("secrets", "list", *HERE)["secrets"]] == ["db-password"]


def test_without_json_stdout_stays_empty_and_the_sentence_goes_to_stderr() -> None:
    record("Something")
    assert done("secrets", "add", "db-password", *HERE, input=value()) == ""
    weak = invoke("secrets", "add", "weak", *HERE, input="aaaaaaaaaa")
    assert "easy to guess" in weak.stderr
    assert invoke("secrets", "remove", "weak", *HERE).stderr == "weak is forgotten.\n"


def test_a_value_that_is_given_as_an_argument_is_not_repeated() -> None:
    record("Something")
    told = invoke("secrets", "add", "db-password", given := value(), *HERE)
    assert told.exit_code == 2
    assert "standard input" in told.stderr
    assert given not in told.output


def test_through_a_server_it_is_the_same() -> None:
    record("Something")
    with served("team.db") as url:
        told = answer("secrets", "add", "db-password", "--user", "u-1", "--url", url, input=value())
        assert told == {"id": "db-password", "scope": {"user": "u-1"}, "weak": False}
        assert answer("secrets", "remove", "db-password", "--url", url)["status"] == "forgotten"
        assert "There is no such secret" in refused("secrets", "remove", "db-password", "--url", url)


def test_a_sweep_says_which_of_a_runs_texts_and_names_it_changed() -> None:
    record("Something")
    late = value()
    told = {"events": [{"kind": "text-delta", "payload": {"delta": f"take {late}"}}]}
    with served("team.db") as url:
        httpx.post(f"{url}/v1/streams/of-{late}/events", json=told).raise_for_status()
        done("secrets", "add", "late", "--url", url, input=late)
        swept = done("secrets", "sweep", "--url", url)
        assert "Of runs: 1 events and 0 messages rewritten." in swept
        assert "Of streams, threads and readers 1 have a new name" in swept
        assert "new name" not in done("secrets", "sweep", "--url", url)


def test_a_tenant_that_is_not_there_is_refused_with_those_that_are() -> None:
    record("Something")
    done("keys", "create", "--tenant", "acme", *HERE)
    for command in (("add", "db-password"), ("list",), ("remove", "db-password"), ("sweep",)):
        said = refused("secrets", *command, "--tenant", "acmee", *HERE, input=value())
        assert "holds no tenant 'acmee', but:" in said
        assert "local" in said
    for tenant in ("acme", "local"):  # the one has a key and no field yet, the other a field
        done("secrets", "add", "db-password", "--tenant", tenant, *HERE, input=value())


def test_without_a_name_the_default_tenant_is_refused_where_only_others_are() -> None:
    record("Something", env={"FIELDSTONE_TENANT": "acme"})
    said = refused("secrets", "add", "db-password", *HERE, input=value())
    assert "holds no tenant 'local', but: acme." in said


def test_another_tenant_than_the_servers_is_refused() -> None:
    record("Something")
    with served("team.db") as url:
        said = refused("secrets", "add", "db-password", "--tenant", "acme", "--url", url, input=value())
        assert "takes you for tenant 'local', and not 'acme'" in said
        assert "holds no tenant 'acme'" in refused("secrets", "list", "--tenant", "acme", *HERE)
        done("secrets", "add", "db-password", "--tenant", "local", "--url", url, input=value())


def test_a_value_of_the_environment_that_is_too_short_is_told_and_not_repeated() -> None:
    record("Something")
    given = {"FIELDSTONE_SECRET_PIN": "q7", "FIELDSTONE_SECRET_LONG": value()}
    said = invoke("status", *HERE, env=given).stderr
    assert "variable=FIELDSTONE_SECRET_PIN" in said
    assert "q7" not in said
    assert "LONG" not in said
