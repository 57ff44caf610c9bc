"""Whatever is asked in whatever order: the host answers as a list in memory would, and never breaks."""

import itertools
from typing import Any, Literal, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from tests.openwop.host import COMPACT, CONSOLIDATE, DISTILL, SEED, Caller, memory, part, told
from tests.openwop.shapes import assert_entry, assert_envelope
from tests.requirements import requirement

_numbers = itertools.count(1)

TAGS = ("red", "round", "ripe")


class Step(NamedTuple):
    kind: Literal["put", "seed", "delete", "forget", "compact"]
    number: int
    tags: tuple[str, ...]


class Kept(NamedTuple):
    id: str
    content: str
    tags: tuple[str, ...]


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from(("put", "put", "put", "seed", "delete", "forget", "compact")),
        st.integers(0, 5),
        st.lists(st.sampled_from(TAGS), unique=True, max_size=2).map(tuple),
    ),
    max_size=14,
)


def done(acme: Caller, ref: str, step: Step, kept: list[Kept]) -> list[Kept]:
    """The step over HTTP, and what a list of the entries, newest first, is after it."""
    content = f"Pear number {step.number} of crate {next(_numbers)}."
    match step.kind:
        case "put":
            entry = acme.put(ref, content, tags=step.tags)
            return [Kept(entry["id"], content, step.tags), *kept]
        case "seed":
            acme.seed(ref, {f"seeded-{step.number}": content}, tags=step.tags)
            others = [each for each in kept if each.id != f"seeded-{step.number}"]
            return [Kept(f"seeded-{step.number}", content, step.tags), *others]
        case "delete":
            target = kept[step.number].id if step.number < len(kept) else "no-such-id"
            assert acme.delete(memory(ref, target)).status_code == (204 if step.number < len(kept) else 404)
            return [each for each in kept if each.id != target]
        case "forget":
            tag = TAGS[step.number % len(TAGS)]
            left = [each for each in kept if tag not in each.tags]
            assert told(acme.post(f"{memory(ref)}/forget", {"tag": tag})) == {"deleted": len(kept) - len(left)}
            return left
        case "compact":
            if len(kept) < 2:
                assert acme.post(COMPACT, {"memoryRef": ref}).status_code == 204
                return kept
            answer = acme.compacted(ref)
            assert set(answer["payload"]["sourceIds"]) == {each.id for each in kept}
            [output] = acme.entries(ref)
            return [Kept(output["id"], answer["outputContent"], tuple(output["tags"]))]


@requirement("openwop:memory:round-trip", "openwop:memory:model")
@given(steps=STEPS, limit=st.integers(0, 4), tag=st.sampled_from(TAGS))
def test_a_memory_is_what_a_list_would_be(acme: Caller, steps: list[Step], limit: int, tag: str) -> None:
    ref = f"mem://properties/{next(_numbers)}"
    kept: list[Kept] = []
    compacted = False
    for step in steps:
        if compacted and step.kind == "forget":
            continue  # it reaches what was archived, too, and what was made of it
        kept = done(acme, ref, step, kept)
        compacted |= step.kind == "compact"
    found = acme.entries(ref)
    for entry in found:
        assert_entry(entry)
        assert told(acme.entry(ref, entry["id"])) == entry
    assert [Kept(entry["id"], entry["content"], tuple(entry["tags"])) for entry in found] == kept
    assert [entry["id"] for entry in acme.entries(ref, limit=limit)] == [each.id for each in kept][: limit or None]
    assert [entry["id"] for entry in acme.entries(ref, tag=tag)] == [each.id for each in kept if tag in each.tags]


# --- nonsense ---------------------------------------------------------------------------------------------------------

NAMES = st.text(max_size=30) | st.sampled_from(("forget", "..", "../x", "field:main", "a/b", "\0", "%00", "é"))
REFS = NAMES.filter(bool)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.sampled_from(
    (
        *("memoryRef", "entries", "content", "tags", "id", "expiresAt", "nodeId", "agentId", "tag", "source"),
        *("tokenBudget", "sources", "indexEmitted", "includeSecretCanary", "workflowId", "inputs"),
    )
)
PARAMS = st.dictionaries(
    st.sampled_from(("limit", "tag", "tokenBudget", "rank", "query", "snapshot", "since", "type", "lastSequence")),
    NAMES | st.integers(-5, 10**18).map(str) | st.sampled_from(("recency", "relevance", "memory.written")),
    max_size=3,
)


@requirement("openwop:errors:envelope")
@given(ref=REFS, entry_id=REFS, params=PARAMS, body=VALUES | st.dictionaries(FIELDS, VALUES, max_size=4))
def test_nonsense_is_answered_or_refused_in_the_envelope(
    acme: Caller, ref: str, entry_id: str, params: dict[str, str], body: Any
) -> None:
    paths = [
        *(("GET", path) for path in (memory(ref), memory(ref, entry_id), "/v1/events", f"/v1/runs/{part(entry_id)}")),
        *(("POST", path) for path in (memory(ref), f"{memory(ref)}/forget", SEED, COMPACT, DISTILL, CONSOLIDATE)),
        *(("POST", "/v1/runs"), ("DELETE", memory(ref, entry_id))),
    ]
    for method, path in paths:
        answer = acme.http.request(method, path, params=params, json=body if method == "POST" else None)
        assert answer.status_code < 500, f"{method} {path} {answer.text}"
        if answer.status_code >= 400:
            assert_envelope(answer)
