"""`fieldstone secrets`"""

import secrets

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
