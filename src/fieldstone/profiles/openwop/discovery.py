"""`/.well-known/openwop`: what this host can do, derived from what is wired and switched on."""

from typing import Any, Final

from msgspec import Struct

from fieldstone.profiles.openwop.limits import HostLimits

PROTOCOL_VERSION: Final = "1.0"
SCHEMA_VERSIONS: Final = {"memory-entry": 1, "memory-list-options": 1}
# OpenWOP's own name for cl100k, which `backends/tokens` counts with.
TOKEN_COUNTER: Final = "cl100k_base"
ARCHIVE_RETENTION: Final = "P100Y"  # nothing but a deletion that somebody asks for takes an archive away
SECRET_SCOPES: Final = ("tenant", "user", "run")


class HostFeatures(Struct, frozen=True, kw_only=True):
    """What is on. `semantic`: something makes vectors of texts. `fixtures`: of the conformance runner, if it is on."""

    limits: HostLimits = HostLimits()
    semantic: bool = True
    compaction: bool = True
    distillation: bool = True
    distillation_scheduled: bool = False
    consolidation: bool = True
    max_body_bytes: int = 8_000_000
    fixtures: tuple[str, ...] = ()


def discovery(host: HostFeatures) -> dict[str, Any]:
    """Families stand at the root; older readers look for them under `capabilities`."""
    families = {
        "memory": _memory(host),
        "agents": {"memoryBackends": ["long-term"], "memoryConsolidation": {"supported": host.consolidation}},
        "secrets": {"supported": True, "scopes": list(SECRET_SCOPES), "resolution": "host-managed"},
    }
    document: dict[str, Any] = {
        "protocolVersion": PROTOCOL_VERSION,
        "supportedEnvelopes": [],  # envelopes are a workflow engine's, and this host has none
        "schemaVersions": SCHEMA_VERSIONS,
        "limits": {
            "clarificationRounds": 0,
            "schemaRounds": 0,
            "envelopesPerTurn": 0,
            "maxRequestBodyBytes": host.max_body_bytes,
        },
        **families,
        "capabilities": families,
    }
    return {**document, "fixtures": list(host.fixtures)} if host.fixtures else document


def _memory(host: HostFeatures) -> dict[str, Any]:
    limits = host.limits
    family: dict[str, Any] = {
        "supported": True,
        "maxEntrySizeBytes": limits.max_entry_bytes,
        "ttlSupported": True,
        "writable": True,
        "search": {"supported": True, "modes": ["semantic", "filter"] if host.semantic else ["filter"]},
        "retention": {"ttl": True, "forget": True},
        "injectionBudget": {"supported": True, "tokenCounter": TOKEN_COUNTER},
        "attribution": {"supported": True, "emitsWriteEvents": True},
    }
    if host.compaction:
        family["compaction"] = {
            "supported": True,
            "trigger": "host-managed",
            "maxInputEntries": limits.max_input_entries,
            "maxOutputBytes": limits.max_output_bytes,
        }
    if host.distillation:
        family["distillation"] = {
            "supported": True,
            "maxTokenBudget": limits.max_token_budget,
            "scheduled": host.distillation_scheduled,
            "indexEmitted": True,
            "tokenizerName": TOKEN_COUNTER,
            "archiveRetention": ARCHIVE_RETENTION,
        }
    return family
