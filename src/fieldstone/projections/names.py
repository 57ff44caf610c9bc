"""Names of agents, sessions and tasks, and the numbers that stand for them in the log."""

from hashlib import blake2b
from typing import Final

from fieldstone.core.events import AgentTexts, LabelKind, NameKind, NameText, decode_texts
from fieldstone.ports.log import ContentStore
from fieldstone.ports.views import Views

MOST_CACHED: Final = 100_000  # a field with a task for every unit must not hold them all in memory
ERASED_NAME: Final = "[erased]"


class Names:
    """A cache over the store in both directions."""

    def __init__(self, views: Views, texts: ContentStore, digest_key: bytes) -> None:
        self._views = views
        self._texts = texts
        self._key = digest_key
        self._numbers: dict[tuple[NameKind, str], int] = {}
        self._names: dict[int, str] = {}
        self._roles: dict[int, str] = {}

    def digest(self, kind: NameKind | LabelKind, name: str) -> bytes:
        return blake2b(f"{kind}\0{name}".encode(), key=self._key, digest_size=16).digest()

    def cached_number(self, kind: NameKind, name: str) -> int | None:
        return self._numbers.get((kind, name))

    async def number(self, kind: NameKind, name: str) -> int | None:
        number = self._numbers.get((kind, name))
        if number is None:
            number = await self._views.name(kind, self.digest(kind, name))
            if number is not None:
                self.learn(kind, name, number)
        return number

    async def name(self, number: int) -> str:
        name = self._names.get(number)
        if name is None:
            stored = (await self._texts.get([number])).get(number)
            name = decode_texts(stored.body, NameText).name if stored else ERASED_NAME
            self._names[number] = name
        return name

    async def role(self, registration: int) -> str:
        """The role that an agent had under this registration."""
        role = self._roles.get(registration)
        if role is None:
            stored = (await self._texts.get([registration])).get(registration)
            role = decode_texts(stored.body, AgentTexts).role if stored else ERASED_NAME
            self._roles[registration] = role
        return role

    def forget(self) -> None:
        """What is in the store is what counts."""
        self._numbers.clear()
        self._names.clear()
        self._roles.clear()

    def learn(self, kind: NameKind, name: str, number: int) -> None:
        if len(self._numbers) >= MOST_CACHED:
            self._numbers.clear()
        if len(self._names) >= MOST_CACHED:
            self._names.clear()
        self._numbers[kind, name] = number
        self._names[number] = name
