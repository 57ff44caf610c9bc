"""`fieldstone reembed`"""

import os
import signal
from collections.abc import Iterator

import pytest

from fieldstone.cli import reembed
from fieldstone.core.replies import EmbeddingProgress, FieldStatus
from tests.cli.running import answer, done, invoke, record, refused, served
from tests.models.endpoint import Items, in_numbers, serving
from tests.models.server import Handler

NONE = {"FIELDSTONE_EMBEDDER": "none"}


@pytest.fixture
def bare() -> None:
    """Three units without vectors."""
    for content in ("Tea is hot", "Coffee is cold", "Milk is white"):
        answer(
            *("record", content, "--intent", "tell", "--confidence", "1", "--reasoning", "seen", "--db", "team.db"),
            env=NONE,
        )


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reembed, "PAUSE_S", 0.001)


@pytest.mark.usefixtures("bare")
def test_what_has_no_vector_gets_one() -> None:
    assert answer("reembed", "--db", "team.db") == {"model": "static/wordllama-256", "units": 3, "made": 3}
    assert done("reembed", "--db", "team.db") == (
        "3 units, 0 vectors made now: all are searched with static/wordllama-256\n"
    )


@pytest.mark.usefixtures("bare")
def test_another_model_takes_the_place_of_the_old_one() -> None:
    done("reembed", "--db", "team.db")
    with serving(in_numbers) as endpoint:
        settings = endpoint_settings(endpoint.url)
        changed = answer("reembed", "--db", "team.db", env=settings)
        assert changed == {"model": "openai/bag-of-words", "units": 3, "made": 3}
        [vectors] = answer("status", "--db", "team.db", env=settings)["embeddings"]
        assert vectors == {"model": "openai/bag-of-words", "state": "serving", "units": 3, "waiting": 0}


@pytest.mark.usefixtures("bare")
def test_what_was_made_before_ctrl_c_is_kept() -> None:
    requests = iter(("dimension", "first", "second", "third", "rest"))

    def second_is_interrupted(handler: Handler, items: Items) -> None:
        if next(requests) == "second":
            os.kill(os.getpid(), signal.SIGINT)
        in_numbers(handler, items)

    with serving(second_is_interrupted) as endpoint:
        settings = endpoint_settings(endpoint.url) | {"FIELDSTONE_EMBEDDER_BATCH": "1"}
        assert invoke("reembed", "--db", "team.db", env=settings).exit_code == 130
        rest = answer("reembed", "--db", "team.db", env=settings)
    assert 0 < rest["made"] < 3


def test_without_a_model_there_is_nothing_to_make() -> None:
    record("Tea is hot")
    assert refused("reembed", "--db", "team.db", env=NONE).startswith("error: embedder is none")


def test_a_server_does_it_by_itself_and_is_watched() -> None:
    record("Tea is hot")
    with served("team.db") as url:
        result = invoke("reembed", "--db", "team.db")
        assert result.stdout == "1 units, 0 vectors made now: all are searched with static/wordllama-256\n"
        assert result.stderr.startswith("A server has this field and embeds by itself")
        assert answer("reembed", "--url", url)["units"] == 1


def test_a_server_without_vectors_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    record("Tea is hot")
    monkeypatch.setenv("FIELDSTONE_EMBEDDER", "none")
    with served("team.db") as url:
        assert "The server has no vectors" in refused("reembed", "--url", url)


@pytest.mark.usefixtures("bare")
def test_a_model_that_never_answers_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(lambda handler, _: handler.send(b"down", status=503)) as endpoint, monkeypatch.context() as patch:
        patch.setattr(reembed, "STALLED_LOOKS", 3)
        stderr = refused("reembed", "--db", "team.db", env=endpoint_settings(endpoint.url))
    assert "error: The embedding model made no vector for a long time. Nothing is lost" in stderr
    assert done("reembed", "--db", "team.db").startswith("3 units, 3 vectors made now")


async def test_a_model_that_has_all_vectors_is_waited_for_until_it_serves() -> None:
    looks = progress_of(
        [],
        [("static/a", "serving", 0), ("openai/b", "preparing", 7)],
        [("static/a", "serving", 0), ("openai/b", "preparing", 0)],
        [("openai/b", "serving", 0)],
    )

    class Watched:
        async def status(self) -> FieldStatus:
            return next(looks)

    left: list[int] = []
    status = await reembed.until_embedded(Watched(), left.append)  # type: ignore[arg-type]  # all that is asked of it
    assert left == [7, 0, 0]
    assert status.embeddings[0].model == "openai/b"


def progress_of(*looks: list[tuple[str, str, int]]) -> Iterator[FieldStatus]:
    for look in looks:
        embeddings = tuple(EmbeddingProgress(model, state, 9, waiting) for model, state, waiting in look)  # type: ignore[arg-type]
        yield FieldStatus(
            tenant="local",
            field="main",
            epoch=9,
            conformance_level=1,
            supported_operations=(),
            protocol_version="0.1.0",
            units=9,
            agents=1,
            conflicts_open=0,
            log_entries=9,
            text_index_position=9,
            embeddings=embeddings,
            detection_behind=0,
            store="memory",
            bytes=0,
            version="",
        )


def endpoint_settings(url: str) -> dict[str, str]:
    return {
        "FIELDSTONE_EMBEDDER": "openai",
        "FIELDSTONE_EMBEDDER_URL": url,
        "FIELDSTONE_EMBEDDER_MODEL": "bag-of-words",
    }
