"""The only place that names a backend. Heavy parts are imported where they are first needed."""

from fieldstone.wiring.access import open_access, opened_keys, opened_secrets
from fieldstone.wiring.addresses import MEMORY, UnknownStore, is_url, store_path
from fieldstone.wiring.fields import (
    OtherField,
    open_door,
    open_field,
    open_local_field,
    open_remote,
    require_tenant,
)
from fieldstone.wiring.house import SERVER_PROGRAM, host_features, open_house, serve
from fieldstone.wiring.logs import log_to_stderr
from fieldstone.wiring.models import open_embedder, open_judge, open_summarizer
from fieldstone.wiring.stores import holder, open_store, open_stores

__all__ = (
    "MEMORY",
    "SERVER_PROGRAM",
    "OtherField",
    "UnknownStore",
    "holder",
    "host_features",
    "is_url",
    "log_to_stderr",
    "open_access",
    "open_door",
    "open_embedder",
    "open_field",
    "open_house",
    "open_judge",
    "open_local_field",
    "open_remote",
    "open_store",
    "open_stores",
    "open_summarizer",
    "opened_keys",
    "opened_secrets",
    "require_tenant",
    "serve",
    "store_path",
)
