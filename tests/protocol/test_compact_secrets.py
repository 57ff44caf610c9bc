"""What a summariser says takes the road of new text. One that got hold of secrets has none of them stored."""

import base64
import codecs
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from pathlib import Path
from typing import Final

import pytest

from fieldstone.field.options import Models
from fieldstone.ports.summarizer import Distillate, Original
from fieldstone.testing import WordCounter
from tests.protocol.rig import OpenRig, Rig
from tests.protocol.ways import DURABLE, on_disk
from tests.redact.fakes import HEX, TOKENS, noise
from tests.requirements import requirement

SESSIONS: Final = ("one", "two", "three")  # each is a group, and gets a synthesis
WHOLE_FORMS: Final[dict[str, Callable[[str], str]]] = {
    "as it is": str,
    "in base64": lambda secret: base64.b64encode(secret.encode()).decode(),
    "in base64 for URLs": lambda secret: base64.urlsafe_b64encode(secret.encode()).decode().rstrip("="),
    "in base64 twice": lambda secret: base64.b64encode(base64.b64encode(secret.encode())).decode(),
    "in hex": lambda secret: secret.encode().hex(),
    "in base32": lambda secret: base64.b32encode(secret.encode()).decode(),
    "for a URL": lambda secret: "".join(f"%{byte:02X}" for byte in secret.encode()),
    "reversed": lambda secret: secret[::-1],
    "rotated": lambda secret: codecs.encode(secret, "rot13"),
    "letter by letter": " ".join,
    "with dashes": lambda secret: "-".join(secret[at : at + 4] for at in range(0, len(secret), 4)),
    "over lines": lambda secret: f"{secret[:16]}\n{secret[16:]}",
}
SECRETS: Final = {"random": noise(32), "hex": noise(40, HEX), "with marks": f"{noise(12)}/{noise(12)}+{noise(9)}="}


class Leaking:
    """A summariser that says its texts, one for each group, whatever it is asked for."""

    name = "leaking"

    def __init__(self, says: Sequence[str]) -> None:
        self._says: Iterator[str] = cycle(says)

    async def distil(self, group: Sequence[Original], most_tokens: int) -> Distillate:
        return Distillate(next(self._says), (), 1, self.name)

    async def close(self) -> None:
        """There is nothing to close."""


class Echoing(Leaking):
    """It repeats the originals' texts, run together: what was cut in two over units is whole again."""

    def __init__(self) -> None:
        super().__init__([""])

    async def distil(self, group: Sequence[Original], most_tokens: int) -> Distillate:
        return Distillate("".join(original.text for original in group), (), 1, self.name)


async def filled(rigs: OpenRig, summarizer: Leaking) -> Rig:
    """Three sessions of a few units each, and somebody who may compact them."""
    field = await rigs(models=lambda: Models(WordCounter(), summarizer=summarizer))
    await field.register("ada")
    await field.register("owner", authority=10)
    for session in SESSIONS:
        for number in range(3):
            await field.record("ada", f"Run {number} of session {session} took a while.", session=session)
    return field


async def compact(field: Rig) -> list[str]:
    """The contents of the syntheses that it made."""
    made = await field.ask("COMPACT", "owner", {"strategy": "summarize", "verify": False})
    return [(await field.unit(unit_id)).content for unit_id in made["synthesis_units"]]


async def everything(field: Rig, folder: Path) -> bytes:
    """All that is exported, on disk, and shown."""
    exported = b"".join([batch async for batch in field.door.export()])
    shown = repr([await field.attune("owner", hint, include_archived=True) for hint in (None, "run", "the key")])
    log = repr(await field.log())
    return exported + on_disk(folder) + shown.encode() + log.encode()


@requirement("akashik:secrets:carried-forward")
@pytest.mark.parametrize("form", WHOLE_FORMS)
@pytest.mark.parametrize("kind", SECRETS)
async def test_a_known_secret_in_a_summary_is_not_stored_whatever_its_form(
    rigs: OpenRig, tmp_path: Path, kind: str, form: str
) -> None:
    leak = WHOLE_FORMS[form](SECRETS[kind])
    field = await filled(rigs, Leaking([f"The runs took a while. The key is {leak} and works.", leak, f"x={leak};"]))
    await field.door.put_secret("vault", SECRETS[kind])
    contents = await compact(field)
    assert len(contents) == len(SESSIONS)
    assert all("[REDACTED:vault]" in content for content in contents)
    stored = await everything(field, tmp_path)
    assert leak.encode() not in stored
    assert SECRETS[kind].encode() not in stored


@requirement("akashik:secrets:carried-forward")
@pytest.mark.parametrize("kind", TOKENS)
async def test_a_secret_that_a_summary_invents_is_not_stored(rigs: OpenRig, tmp_path: Path, kind: str) -> None:
    field = await filled(rigs, Leaking([f"The runs took a while. The key is {TOKENS[kind]} and works."]))
    contents = await compact(field)
    assert all("[REDACTED:" in content for content in contents)
    assert TOKENS[kind].encode() not in await everything(field, tmp_path)


@pytest.mark.parametrize("kind", SECRETS)
async def test_of_a_secret_split_over_sentences_of_a_summary_the_parts_are_not_stored(
    rigs: OpenRig, tmp_path: Path, kind: str
) -> None:
    secret = SECRETS[kind]
    parts = [secret[: len(secret) // 2], secret[len(secret) // 2 :]]
    field = await filled(rigs, Leaking([f"It begins with {parts[0]}. The run was long. It ends with {parts[1]}."]))
    await field.door.put_secret("vault", secret)
    await compact(field)
    stored = await everything(field, tmp_path)
    assert not all(part.encode() in stored for part in parts)


@pytest.mark.parametrize("kind", SECRETS)
@pytest.mark.parametrize("count", [2, 3])
async def test_of_a_secret_split_over_syntheses_a_part_is_not_stored(
    rigs: OpenRig, tmp_path: Path, kind: str, count: int
) -> None:
    secret = SECRETS[kind]
    size = -(-len(secret) // count)
    parts = [secret[at : at + size] for at in range(0, len(secret), size)]
    says = [f"The runs took a while, and part {number} is {part}" for number, part in enumerate(parts)]
    field = await filled(rigs, Leaking([*says, "The runs took a while."]))
    await field.door.put_secret("vault", secret)
    contents = await compact(field)
    assert len(contents) == len(SESSIONS)
    stored = await everything(field, tmp_path)
    assert not all(part.encode() in stored for part in parts)


async def test_a_summary_that_joins_what_units_said_in_parts_does_not_make_it_whole(
    rigs: OpenRig, tmp_path: Path
) -> None:
    secret = SECRETS["random"]
    field = await filled(rigs, Echoing())
    await field.record("ada", f"It begins with {secret[:16]}", session="one")  # before anybody knew that it is one
    await field.record("ada", f"{secret[16:]} is how it ends.", session="one")
    await field.door.put_secret("vault", secret)
    contents = await compact(field)
    assert sum("[REDACTED:vault]" in content for content in contents) == 1
    assert secret.encode() not in await everything(field, tmp_path)


async def test_a_second_compaction_goes_on_from_what_the_first_one_said(rigs: OpenRig, tmp_path: Path) -> None:
    secret = SECRETS["random"]
    says = ["The runs took a while.", "They did.", f"It begins with {secret[:16]}", f"{secret[16:]} is how it ends."]
    field = await filled(rigs, Leaking(says))
    await field.door.put_secret("vault", secret)
    await compact(field)
    await field.record("ada", "Another run.", session="four")
    await field.ask("COMPACT", "owner", {"strategy": "summarize", "filter": {"session_id": "four"}, "verify": False})
    stored = await everything(field, tmp_path)
    assert not (secret[:16].encode() in stored and secret[16:].encode() in stored)


@pytest.mark.parametrize("transport", DURABLE[:1], indirect=True)
async def test_a_field_that_refuses_secrets_keeps_the_units_of_a_summary_that_holds_one(
    rigs: OpenRig, tmp_path: Path
) -> None:
    secret = SECRETS["random"]
    leaking = Leaking([f"The key is {secret}.", "The runs took a while.", "They all did."])
    field = await filled(rigs, leaking)
    await field.restart(refuse_secrets=True)
    await field.door.put_secret("vault", secret)
    made = await field.ask("COMPACT", "owner", {"strategy": "summarize", "verify": False})
    assert (made["units_affected"], made["synthesis_units_created"], len(made["skipped"])) == (6, 2, 3)
    assert secret.encode() not in await everything(field, tmp_path)


@pytest.mark.parametrize("transport", DURABLE[:1], indirect=True)
@pytest.mark.parametrize("refuse", [False, True])
async def test_a_summary_that_holds_a_secret_keeps_nothing_from_being_purged(
    rigs: OpenRig, tmp_path: Path, refuse: bool
) -> None:
    secret = SECRETS["random"]
    field = await filled(rigs, Leaking(["The runs took a while."] * len(SESSIONS) + [f"The key is {secret}."]))
    await field.record("ada", "We go on in Oslo.", session="one", type="decision")
    await compact(field)
    await field.restart(refuse_secrets=refuse)
    await field.door.put_secret("vault", secret)
    wanted = {"session_id": "one", "types": ["decision"]}
    purged = await field.ask("COMPACT", "owner", {"strategy": "purge", "filter": wanted})
    assert (purged["units_affected"], purged["synthesis_units_created"]) == (1, 0 if refuse else 1)
    stored = await everything(field, tmp_path)
    assert b"Oslo" not in stored
    assert secret.encode() not in stored
