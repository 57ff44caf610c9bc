"""The registry of known secrets, as an open field keeps it: who changed it, and when, goes on record."""

from collections.abc import Awaitable, Callable, Sequence

from fieldstone.core.events import SecretChanged, SecretTexts
from fieldstone.core.replies import Reply
from fieldstone.core.text import CleanText
from fieldstone.core.vocabulary import SecretChange, SecretHolder
from fieldstone.field.cleaning import Cleaning
from fieldstone.field.desk import Desk, Draft
from fieldstone.field.secrets import Secrets, SecretScope, told_secret
from fieldstone.field.work import NO_ANSWER, Work
from fieldstone.ports.vault import KeptSecret


class Registry:
    """A change goes on record before it is made: what is acknowledged is always there to be found."""

    def __init__(self, secrets: Secrets, cleaning: Cleaning, submit: Callable[[Work], Awaitable[Reply]]) -> None:
        self._secrets = secrets
        self._cleaning = cleaning
        self._submit = submit

    async def put(self, secret_id: str, value: str, scope: SecretScope, credential: str | None) -> bool:
        """Whether the value is weak: then it is found in plain form only."""
        secret = self._secrets.checked(secret_id, value, scope)
        await self._refuse_told(secret)
        await self._submit(Noting("registered", secret_id, scope, credential))
        return self._secrets.keep(secret)

    async def drop(self, secret_id: str, credential: str | None) -> None:
        scope = self._secrets.scope(secret_id)
        await self._submit(Noting("dropped", secret_id, scope, credential))
        self._secrets.drop(secret_id)

    async def _refuse_told(self, secret: KeptSecret) -> None:
        """As `refuse_told`, with the harness that is there: to make one of thousands of secrets takes seconds."""
        offences = (await self._cleaning.harness()).holds_secret([secret.id, secret.scope])
        if any(known.id in offences for known in self._secrets.known()):
            raise told_secret()


class Noting:
    """The event, with the secret's name beside it; the value is no part of it."""

    message = None
    brings_news = False  # a name that looks like a secret is rewritten here, and the secret is registered all the same

    def __init__(self, change: SecretChange, secret_id: str, scope: SecretScope, credential: str | None) -> None:
        self._change: SecretChange = change
        self._secret_id = secret_id
        self._scope = scope
        self._credential = credential

    def texts(self) -> Sequence[str]:
        holder = self._scope.user if self._scope.user is not None else self._scope.run
        return (self._secret_id,) if holder is None else (self._secret_id, holder)

    def names(self) -> Sequence[tuple[str, str]]:
        return ()

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Reply]:
        draft = desk.quiet_draft(desk.epoch)
        draft.makes_room = True  # what must not be stored can be told to a full store, too
        name, holder = clean[0], clean[1] if len(clean) > 1 else None
        event = SecretChanged(change=self._change, of=_holder(self._scope), credential=self._credential)
        draft.append(event, SecretTexts(name, holder))
        return draft, NO_ANSWER


def _holder(scope: SecretScope) -> SecretHolder:
    if scope.user is not None:
        return "user"
    return "tenant" if scope.run is None else "run"
