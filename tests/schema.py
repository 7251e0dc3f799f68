"""Data against a JSON schema: the keywords that this project's schemas use, and no others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_TYPES: Mapping[str, type] = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}
_KNOWN = {"type", "const", "enum", "anyOf", "$ref", "properties", "required", "additionalProperties", "items"}
_SAID = {"$schema", "$defs", "title", "description"}


def problems(data: Any, schema: Mapping[str, Any]) -> list[str]:
    """Where the data is not as the schema says."""
    return list(_problems(data, schema, schema, "$"))


def _problems(data: Any, schema: Mapping[str, Any], root: Mapping[str, Any], at: str) -> Iterator[str]:
    assert schema.keys() <= _KNOWN | _SAID, f"keywords that are not checked here: {schema.keys() - _KNOWN - _SAID}"
    if "$ref" in schema:
        yield from _problems(data, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root, at)
    if "anyOf" in schema and all(list(_problems(data, choice, root, at)) for choice in schema["anyOf"]):
        yield f"{at}: none of the choices"
    if "const" in schema and data != schema["const"]:
        yield f"{at}: {data!r} is not {schema['const']!r}"
    if "enum" in schema and data not in schema["enum"]:
        yield f"{at}: {data!r} is none of {schema['enum']}"
    types = schema.get("type", [])
    if types and not any(_is(data, name) for name in ([types] if isinstance(types, str) else types)):
        yield f"{at}: {data!r} is not of type {types}"
    if isinstance(data, dict):
        yield from _of_object(data, schema, root, at)
    if isinstance(data, list):
        for number, item in enumerate(data):
            yield from _problems(item, schema.get("items", {}), root, f"{at}[{number}]")


def _is(data: Any, name: str) -> bool:
    return (
        data is None if name == "null" else isinstance(data, _TYPES[name]) and not (name == "integer" and data is True)
    )


def _of_object(data: Mapping[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any], at: str) -> Iterator[str]:
    known = schema.get("properties", {})
    others = schema.get("additionalProperties", {})
    yield from (f"{at}: no `{name}`" for name in schema.get("required", []) if name not in data)
    for name, value in data.items():
        if name not in known and others is False:
            yield f"{at}: `{name}` is not known"
        else:
            yield from _problems(value, known.get(name, others), root, f"{at}.{name}")
