"""The OpenAPI document as a page that needs no script and nothing from elsewhere."""

import re
from collections.abc import Iterator
from html import escape
from importlib.resources import files
from typing import Any, Final

from msgspec import json

TAGS: Final = ("operations", "field", "OpenWOP memory", "streams and threads", "server", "not built yet")
WIDTH: Final = 2  # of an indentation


def docs_page(document: dict[str, Any], base_url: str) -> bytes:
    template = files("fieldstone.servers.http").joinpath("docs_page.html").read_text(encoding="utf-8")
    info = document["info"]
    sections = [_section(tag, document, base_url) for tag in TAGS]
    page = (
        template.replace("{{title}}", escape(info["title"]))
        .replace("{{version}}", escape(info["version"]))
        .replace("{{description}}", escape(info["description"]))
        .replace("{{contents}}", "\n".join(_contents(tag, document) for tag in TAGS))
        .replace("{{sections}}", "\n".join(sections))
        .replace("{{schemas}}", "\n".join(_schemas(document)))
    )
    return page.encode()


def named_path(path: str) -> str:
    """The path with a word where a caller puts something of their own."""
    return re.sub(r"{(\w+)}", lambda found: found[1].upper(), path)


def curl(method: str, path: str, base_url: str, body: Any = None, *, lines: bool = False) -> str:
    """A command that can be pasted into a shell."""
    command = ["curl", "-s"]
    if method not in ("GET", "POST") or (method == "POST" and body is None and not lines):
        command += ["-X", method]
    command.append(f"{base_url}{named_path(path)}")
    if lines:
        command.append("--data-binary @export.jsonl")
    if body is not None:
        text = json.format(json.encode(body), indent=WIDTH).decode().replace("'", "'\\''")
        command += ["-H 'content-type: application/json'", "-d", f"'{text}'"]
    return " ".join(command)


def _routes(tag: str, document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, route in methods.items():
            if tag in route["tags"]:
                yield method.upper(), path, route


def _contents(tag: str, document: dict[str, Any]) -> str:
    links = [
        f'<li><a href="#{escape(route["operationId"])}"><b>{method}</b> {escape(path)}</a></li>'
        for method, path, route in _routes(tag, document)
    ]
    return f"<h3>{escape(tag.capitalize())}</h3>\n<ul>{''.join(links)}</ul>"


def _section(tag: str, document: dict[str, Any], base_url: str) -> str:
    routes = [_route(method, path, route, base_url) for method, path, route in _routes(tag, document)]
    return f"<h2>{escape(tag.capitalize())}</h2>\n" + "\n".join(routes)


def _route(method: str, path: str, route: dict[str, Any], base_url: str) -> str:
    content = route.get("requestBody", {}).get("content", {})
    body = content.get("application/json", {})
    command = curl(method, path, base_url, body.get("example"), lines="application/jsonl" in content)
    parts = [
        f'<section id="{escape(route["operationId"])}">',
        f"<h3><b>{method}</b> <code>{escape(path)}</code></h3>",
        f"<p>{escape(route['summary'])}</p>",
        _parameter_table(route.get("parameters", ())),
        f"<pre>{escape(command)}</pre>",
    ]
    if "schema" in body:
        parts.append(f"<p>Takes {_kind(body['schema'])}.</p>")
    parts.append(_response_table(route["responses"]))
    return "\n".join([*parts, "</section>"])


def _parameter_table(parameters: Any) -> str:
    rows = [
        f"<tr><td><code>{escape(each['name'])}</code></td><td>{escape(each['in'])}</td>"
        f"<td>{_kind(each['schema'])}</td><td>{escape(each.get('description', ''))}</td></tr>"
        for each in parameters
    ]
    return f"<table>{''.join(rows)}</table>" if rows else ""


def _response_table(responses: dict[str, Any]) -> str:
    rows = []
    for status, response in responses.items():
        if "$ref" in response:
            continue
        kinds = [_kind(media["schema"]) for media in response.get("content", {}).values()]
        rows.append(f"<tr><td>{status}</td><td>{escape(response['description'])}</td><td>{''.join(kinds)}</td></tr>")
    refusals = ", ".join(status for status, response in responses.items() if "$ref" in response)
    rows.append(f'<tr><td>{refusals}</td><td>Refused.</td><td><a href="#schema-ErrorBody">ErrorBody</a></td></tr>')
    return f"<table>{''.join(rows)}</table>"


def _schemas(document: dict[str, Any]) -> Iterator[str]:
    for name, schema in document["components"]["schemas"].items():
        required = schema.get("required", ())
        rows = [
            f"<tr><td><code>{escape(field)}</code>{'' if field in required else ' <i>optional</i>'}</td>"
            f"<td>{_kind(kind)}</td></tr>"
            for field, kind in schema.get("properties", {}).items()
        ]
        yield f'<section id="schema-{escape(name)}"><h3>{escape(name)}</h3>'
        yield f"<p>{escape(schema.get('description', ''))}</p><table>{''.join(rows)}</table></section>"


def _kind(schema: dict[str, Any]) -> str:
    """A schema in a few words, with links to those it refers to."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#schema-{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(_kind(each) for each in schema["anyOf"])
    if "const" in schema:
        return f"<code>{escape(json.encode(schema['const']).decode())}</code>"
    if "enum" in schema:
        return " | ".join(f"<code>{escape(str(value))}</code>" for value in schema["enum"])
    if "prefixItems" in schema:
        return f"[{', '.join(_kind(each) for each in schema['prefixItems'])}]"
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    named = schema.get("type", "any value")
    return escape(" or ".join(named) if isinstance(named, list) else named)
