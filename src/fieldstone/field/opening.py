"""A field is opened: its state is read back, and its indexes catch up."""

from collections.abc import Callable

import structlog

from fieldstone.field.field import LocalField
from fieldstone.field.options import Models, Options
from fieldstone.field.rebuild import rebuild
from fieldstone.field.secrets import Secrets
from fieldstone.field.state import FieldState
from fieldstone.ports.planes import PlaneStore
from fieldstone.ports.store import Place, Store
from fieldstone.ports.world import Clock, Ids
from fieldstone.projections.names import Names
from fieldstone.redact import Harness

logger = structlog.get_logger("fieldstone.opening")


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

    Rows of archived units lie beside the store. Where they are lost the log still says what they were.

    A `place` that is the field's alone is closed with it.
    """
    if not await store.has_every_view():
        logger.warning("rows of archived units are missing beside the store, or of another time: views are built anew")
        await rebuild(store, Names(store.views, store.texts, store.digest_key).digest)
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
