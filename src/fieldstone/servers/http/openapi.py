"""The OpenAPI 3.1 document, made from the operation table and the types that the routes really decode and encode."""

import re
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from typing import Any, Final, get_args

from msgspec import json

from fieldstone.core import limits
from fieldstone.core.limits import MAX_EPOCH, MAX_ID_CHARS
from fieldstone.core.replies import AttunementOfIds
from fieldstone.core.vocabulary import ConflictStatus, Guard, Operation
from fieldstone.field.field import LOG_PAGE_ENTRIES
from fieldstone.field.listing import MOST_LISTED
from fieldstone.profiles.openwop.adapter import MOST_QUERY_CHARS, MOST_TAG_CHARS
from fieldstone.servers.http import thread_routes
from fieldstone.servers.http.compactions import LIST_LIMIT, Begun
from fieldstone.servers.http.examples import example_message
from fieldstone.servers.http.inspect import IMPORT_CHUNK_BYTES, LOG_LIMIT
from fieldstone.servers.http.memory import DISCOVERY_PATH
from fieldstone.servers.http.operations import MOST_MESSAGES
from fieldstone.servers.http.routes import (
    DOCS_PATH,
    INSPECTION_ROUTES,
    MEMORY_ROUTES,
    MESSAGES_PATH,
    OPENAPI_PATH,
    UNBUILT_ROUTES,
    Health,
    InspectionRoute,
)
from fieldstone.wire.errors import ErrorBody
from fieldstone.wire.messages import OPERATIONS, PROTOCOL, VERSION
from fieldstone.wire.openwop import OpenWopError
from fieldstone.wire.operations import OPERATION_ROUTES, OperationRoute

Schema = dict[str, Any]

PLANE_ROUTES: Final = (*thread_routes.STREAM_ROUTES, *thread_routes.THREAD_ROUTES)

REF: Final = "#/components/schemas/{name}"
REFUSALS: Final = {
    400: "Malformed. The message names the field.",
    401: "The request carries no valid credential.",
    403: "The agent is not registered or may not do this, or the request comes from a foreign web page.",
    404: "There is no such unit or conflict.",
    409: "The id is taken, or the present status does not allow this step.",
    410: "The unit was purged; its tombstone is beside the message.",
    413: "The body is larger than the server takes.",
    422: "An id or a text holds what looks like a secret.",
    429: "The credential has used up its rate or its quota.",
    500: "Something broke inside the Field.",
    501: "Not built yet, or above the Field's conformance level.",
    503: "The server is shutting down.",
    504: "The Field did not reach min_epoch in time.",
    507: "The store is full. Nothing was written; reads go on.",
}
OF_EVERY_ROUTE: Final = (401, 403, 429, 500, 503)
OF_A_QUERY: Final = 400  # what a route does not know behind the question mark, it refuses
OPTIONAL_BODIES: Final = {"rotate_key", *thread_routes.OPTIONAL_BODIES}
EXAMPLES: Final[dict[str, Schema]] = {
    **thread_routes.EXAMPLES,
    "put_memory": {"content": "The user prefers short answers.", "tags": ["preference"]},
    "forget_memory": {"tag": "preference"},
    "put_secret": {"value": "what must never be stored", "scope": {"tenant": True}},
    "restore": {"unit_ids": ["mem-0198c3f1a7de55b20198c3f1a7de55b2"]},
    "set_policies": {
        "policies": [
            {
                "name": "old-observations",
                "strategy": "archive",
                "match": {"types": ["observation"]},
                "max_age": "30d",
                "schedule": "0 3 * * sun",
            }
        ]
    },
    "create_key": {"tenant": "local", "authority": 4, "agents": ["ada"], "expires": "2030-01-31T12:00:00Z"},
    "rotate_key": {"expires": "2030-01-31T12:00:00Z"},
}
QUERY_FIELDS: Final[dict[str, Schema]] = {
    "limit": {"type": "integer", "minimum": 0},
    "tag": {"type": "string", "minLength": 1, "maxLength": MOST_TAG_CHARS},
    "tokenBudget": {"type": "integer", "minimum": 1},
    "rank": {"enum": ["recency", "relevance"]},
    "query": {"type": "string", "minLength": 1, "maxLength": MOST_QUERY_CHARS},
    "snapshot": {"type": "string"},
    "type": {"type": "string"},
    "since": {"type": "string"},
    **thread_routes.QUERY_FIELDS,
}
OF_OPERATIONS: Final = (400, 404, 409, 413, 422, 501, 504, 507)

ID: Final = {"minLength": 1, "maxLength": MAX_ID_CHARS}
EPOCH: Final = {"minimum": 0, "maximum": MAX_EPOCH}
SHARE: Final = {"minimum": 0, "maximum": 1}
# What `core/validate` holds beyond the types. Fields of requests; a bound here is one that is refused.
BOUNDS: Final[dict[str, dict[str, Schema]]] = {
    "Register": {
        "id": ID,
        "role": {"minLength": 1, "maxLength": limits.MAX_ROLE_CHARS},
        "interests": {"maxItems": limits.MAX_INTERESTS},
        "required_operations": {"maxItems": limits.MAX_LIST_ITEMS},
        "authority": {"minimum": 0, "maximum": limits.MAX_AUTHORITY},
    },
    "Deregister": {"agent_id": ID},
    "Record": {
        "content": {"minLength": 1, "maxLength": limits.MAX_CONTENT_CHARS},
        "relations": {"maxItems": limits.MAX_RELATIONS},
    },
    "Intent": {
        "purpose": {"maxLength": limits.MAX_INTENT_CHARS},
        "question": {"maxLength": limits.MAX_INTENT_CHARS},
        "task_id": ID,
    },
    "Confidence": {
        "score": SHARE,
        "reasoning": {"maxLength": limits.MAX_REASONING_CHARS},
        "evidence": {"maxItems": limits.MAX_LIST_ITEMS},
        "assumptions": {"maxItems": limits.MAX_LIST_ITEMS},
    },
    "Relation": {"target_id": ID, "description": {"maxLength": limits.MAX_DESCRIPTION_CHARS}},
    "Scope": {
        "role": {"minLength": 1, "maxLength": limits.MAX_ROLE_CHARS},
        "max_units": {"minimum": 1, "maximum": limits.MAX_UNITS},
        "max_tokens": {"minimum": 1},
        "interests": {"maxItems": limits.MAX_INTERESTS},
        "active_task_id": ID,
        "relevance_threshold": SHARE,
        "recency_weight": SHARE,
        "since_epoch": EPOCH,
        "sessions": {"maxItems": limits.MAX_SESSIONS},
    },
    "Attune": {
        "context_hint": {"maxLength": limits.MAX_HINT_CHARS},
        "since_epoch": EPOCH,
        "min_epoch": EPOCH,
    },
    "Detect": {"target_id": ID, "after_epoch": EPOCH},
    "Commit": {"memory_unit_id": ID},
    "Discard": {"memory_unit_id": ID, "reason": {"maxLength": limits.MAX_REASON_CHARS}},
    "Retract": {"memory_unit_id": ID, "reason": {"minLength": 1, "maxLength": limits.MAX_REASON_CHARS}},
}
# Fields that the types leave open because their absence has a code of its own.
REQUIRED_BY_RULE: Final = {"Record": ("mode", "type", "content", "intent"), "Intent": ("purpose",)}
KEY_SCHEME: Final = {
    "type": "http",
    "scheme": "bearer",
    "description": "A key of `fieldstone keys create`, or a JWT. Needed once a key exists.",
}
DESCRIPTIONS: Final = {
    "Record": "A unit. A committed one needs confidence with score and reasoning (from conformance level 1 on).",
    "ErrorBody": "Every refusal. A refused RECORD or REGISTER also has status and rejection_reason.",
}


@cache
def openapi_document() -> Schema:
    paths: dict[str, Schema] = {route.path: {"post": _operation(route)} for route in OPERATION_ROUTES}
    paths[MESSAGES_PATH] = {"post": _messages()}
    for route in INSPECTION_ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _inspection(route)
    for route in PLANE_ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = {**_inspection(route), "tags": ["streams and threads"]}
    for route in MEMORY_ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _of_memory(route)
    for missing in UNBUILT_ROUTES:
        for method in missing.methods:
            paths.setdefault(missing.path, {})[method.lower()] = {
                "operationId": f"{method.lower()}{missing.path.replace('{id}', 'one').replace('/', '_')}",
                "summary": f"{missing.name}: not built yet.",
                "tags": ["not built yet"],
                **_parameters(missing.path),
                "responses": _refusals(413, 501),
            }
    paths |= _about_the_server()
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Fieldstone",
            "version": version("fieldstone"),
            "description": "Shared memory for AI agents: the Akashik Protocol 0.1.0 over HTTP.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "security": [{"key": []}, {}],
        "components": {
            "securitySchemes": {"key": KEY_SCHEME},
            "schemas": _schemas(),
            "responses": {
                **{f"Error{status}": _error(status) for status in REFUSALS},
                **{f"OpenWopError{status}": _openwop_error(status) for status in REFUSALS},
            },
        },
    }


# --- routes -----------------------------------------------------------------------------------------------------------


def _operation(route: OperationRoute) -> Schema:
    built = route.reply is not None
    return {
        "operationId": route.operation.lower(),
        "summary": route.summary if built else f"{route.summary} Not built yet.",
        "tags": ["operations" if built else "not built yet"],
        "requestBody": _json_body(_message_ref(route.operation), example_message(route.operation)),
        "responses": {
            **({"200": _json(_reply_schema(route), "The operation was carried out.")} if built else {}),
            **({"202": _json(_of_type(Begun), "Begun in the background.")} if route.operation == "COMPACT" else {}),
            **_refusals(*(OF_OPERATIONS if built else (400, 413, 501))),
        },
    }


def _messages() -> Schema:
    message = {"anyOf": [_message_ref(route.operation) for route in OPERATION_ROUTES]}
    answer = {"anyOf": [_reply_schema(route) for route in OPERATION_ROUTES if route.reply is not None]}
    answers = {"type": "array", "items": {"anyOf": [*answer["anyOf"], _ref("ErrorBody")]}}
    return {
        "operationId": "messages",
        "summary": f"A message of any operation; or an array of at most {MOST_MESSAGES}, executed in order, "
        "each answer or error body in its place.",
        "tags": ["operations"],
        "requestBody": _json_body(
            {"anyOf": [message, {"type": "array", "items": {}, "maxItems": MOST_MESSAGES}]},
            [example_message("REGISTER"), example_message("RECORD")],
        ),
        "responses": {
            "200": _json({"anyOf": [answer, answers]}, "The answer, or the answers."),
            **_refusals(*OF_OPERATIONS),
        },
    }


def _inspection(route: InspectionRoute) -> Schema:
    described: Schema = {
        "operationId": "import" if route.name == "take_in" else route.name,
        "summary": route.summary,
        "tags": ["field"],
        **_parameters(route.path, route.query),
    }
    if route.path == "/v1/import":
        lines = {"type": "string", "maxLength": IMPORT_CHUNK_BYTES}
        described["requestBody"] = {"required": False, "content": {"application/jsonl": {"schema": lines}}}
    if route.body is not None:
        body = _json_body(_of_type(route.body), EXAMPLES[route.name])
        described["requestBody"] = body | {"required": route.name not in OPTIONAL_BODIES}
    if route.status == 204:
        done: Schema = {"description": "Done."}
    elif route.name == "compaction_events" or route.name in thread_routes.EVENT_STREAMS:
        done = {"description": "Steps.", "content": {"text/event-stream": {"schema": {"type": "string"}}}}
    elif route.reply is None:
        done = {"description": "One entry a line.", "content": {"application/jsonl": {"schema": {"type": "string"}}}}
    else:
        done = _json(_of_type(route.reply), "Done.")
    return {**described, "responses": {str(route.status): done, **_refusals(OF_A_QUERY, *route.refusals)}}


def _of_memory(route: InspectionRoute) -> Schema:
    described = _inspection(route)
    statuses = {OF_A_QUERY, *route.refusals, *OF_EVERY_ROUTE}
    refusals = {str(status): {"$ref": f"#/components/responses/OpenWopError{status}"} for status in sorted(statuses)}
    answer = {str(route.status): described["responses"][str(route.status)]}
    return {**described, "tags": ["OpenWOP memory"], "responses": {**answer, **refusals}}


def _about_the_server() -> dict[str, Schema]:
    html = {"description": "This document, readable.", "content": {"text/html": {"schema": {"type": "string"}}}}
    moved = {"description": "To the docs.", "headers": {"Location": {"schema": {"type": "string"}}}}
    routes = {
        "/healthz": ("alive", "The server is alive.", {"200": _json(_of_type(Health), "It is.")}),
        "/readyz": ("ready", "The field is open and writable.", {"200": _json(_of_type(Health), "It is.")}),
        OPENAPI_PATH: ("openapi", "This document.", {"200": _json({"type": "object"}, "OpenAPI 3.1.")}),
        DISCOVERY_PATH: (
            "discovery",
            "What the OpenWOP memory host can do; 404 where it is off.",
            {"200": _json({"type": "object"}, "Its capabilities.")},
        ),
        DOCS_PATH: ("docs", "This document as a page.", {"200": html}),
        "/": ("root", "Leads to the docs.", {"307": moved}),
    }
    return {
        path: {
            "get": {
                "operationId": name,
                "summary": summary,
                "tags": ["server"],
                "responses": {**responses, **_refusals()},
            }
        }
        for path, (name, summary, responses) in routes.items()
    }


def _parameters(path: str, query: Sequence[str] = ()) -> Schema:
    named: list[Schema] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", path)
    ]
    if path == "/v1/log":
        named += _page(0, LOG_PAGE_ENTRIES, LOG_LIMIT)
    elif path in ("/v1/compactions", "/v1/guards"):
        guards = [{"name": "guard", "in": "query", "schema": {"enum": list(get_args(Guard))}}]
        named += [*(guards if "guard" in query else ()), *_page(1, MOST_LISTED, LIST_LIMIT)]
    elif path == "/v1/conflicts":
        statuses = {"type": "array", "items": {"enum": list(get_args(ConflictStatus))}}
        named += [_query("status", "Only these, with commas between; absent: all.", statuses)]
    else:
        named += [{"name": name, "in": "query", "schema": QUERY_FIELDS[name]} for name in query]
    return {"parameters": named} if named else {}


def _page(least: int, most: int, default: int) -> list[Schema]:
    after = {"type": "integer", **EPOCH, "default": 0}
    limit = {"type": "integer", "minimum": least, "maximum": most, "default": default}
    return [_query("after", "After this entry of the log.", after), _query("limit", "At most.", limit)]


def _query(name: str, description: str, schema: Schema) -> Schema:
    return {"name": name, "in": "query", "description": description, "schema": schema, "explode": False}


def _json_body(schema: Schema, example: Any) -> Schema:
    return {"required": True, "content": {"application/json": {"schema": schema, "example": example}}}


def _json(schema: Schema, description: str) -> Schema:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _refusals(*statuses: int) -> Schema:
    every = sorted({*statuses, *OF_EVERY_ROUTE})
    return {str(status): {"$ref": f"#/components/responses/Error{status}"} for status in every}


def _openwop_error(status: int) -> Schema:
    return _json(_ref("OpenWopError"), REFUSALS[status])


def _error(status: int) -> Schema:
    return _json(_ref("ErrorBody"), REFUSALS[status])


# --- schemas ----------------------------------------------------------------------------------------------------------


def _schemas() -> dict[str, Schema]:
    _, schemas = json.schema_components(_all_types(), ref_template=REF)
    for name, required in REQUIRED_BY_RULE.items():
        schemas[name]["required"] = list(required)
    for name, description in DESCRIPTIONS.items():
        schemas[name]["description"] = description
    for name, fields in BOUNDS.items():
        for field, bound in fields.items():
            _bounded(schemas[name]["properties"][field]).update(bound)
    return {**schemas, **{_message_name(operation): _message_schema(operation) for operation in OPERATIONS}}


def _bounded(schema: Schema) -> Schema:
    """The schema of the value itself, where null is allowed, too."""
    if "anyOf" in schema:
        (schema,) = [each for each in schema["anyOf"] if each.get("type") != "null"]
    return schema


def _all_types() -> list[Any]:
    types = [kind for route in OPERATION_ROUTES for kind in (route.request, route.reply) if kind is not None]
    routes = (*INSPECTION_ROUTES, *MEMORY_ROUTES, *PLANE_ROUTES)
    types += [kind for route in routes for kind in (route.body, route.reply) if kind is not None]
    return list(dict.fromkeys([*types, AttunementOfIds, Begun, ErrorBody, OpenWopError, Health]))


def _message_schema(operation: Operation) -> Schema:
    request = next(route.request for route in OPERATION_ROUTES if route.operation == operation)
    properties = {
        "protocol": {"const": PROTOCOL},
        "version": {"const": VERSION},
        "id": {"type": "string", **ID},
        "operation": {"const": operation},
        "agent_id": {"type": "string", **ID},
        "session_id": {"type": ["string", "null"], **ID},
        "epoch": {"type": "integer", **EPOCH},
        "payload": {"type": "object"} if request is None else _of_type(request),
    }
    return {
        "title": f"{operation} message",
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _message_name(operation: Operation) -> str:
    return f"{operation.capitalize()}Message"


def _message_ref(operation: Operation) -> Schema:
    return _ref(_message_name(operation))


def _reply_schema(route: OperationRoute) -> Schema:
    if route.operation == "ATTUNE":
        return {"anyOf": [_of_type(route.reply), _of_type(AttunementOfIds)]}
    return _of_type(route.reply)


def _of_type(kind: Any) -> Schema:
    """A reference to the schema of a type, under the name that msgspec gives it."""
    (schema,), _ = json.schema_components([kind], ref_template=REF)
    return schema


def _ref(name: str) -> Schema:
    return {"$ref": REF.format(name=name)}
