"""A field is opened: its state is read back, and its indexes catch up."""

from collections.abc import Callable

from fieldstone.field.field import LocalField
from fieldstone.field.options import Models, Options
from fieldstone.field.secrets import Secrets
from fieldstone.field.state import FieldState
from fieldstone.ports.planes import PlaneStore
from fieldstone.ports.store import Place, Store
from fieldstone.ports.world import Clock, Ids
from fieldstone.redact import Harness


async def open_local(
    store: Store,
    *,
    clock: Clock,
    ids: Ids,
    harness: Callable[[], Harness],
    secrets: Secrets,
    models: Models,
    options: Options,
    place: Place | None = None,
    planes: PlaneStore | None = None,
) -> LocalField:
    """Read the state back from the store, let the index catch up, and the field is ready.

    A `place` that is the field's alone is closed with it.
    """
    state = await FieldState.load(store, cross_session=options.cross_session)
    field = LocalField(
        store,
        state,
        clock=clock,
        ids=ids,
        harness=harness,
        secrets=secrets,
        models=models,
        options=options,
        place=place,
        planes=planes,
    )
    await field.start()
    return field
