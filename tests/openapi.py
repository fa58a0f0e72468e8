"""The REST catalog's OpenAPI document, as far as requests go, from the client that Polaris generates of it.

No package has the document itself. The client has each operation's method, path and parameters, and its bodies as
models, whose schemas these are; of a choice between models it has a model of its own, which is made a choice again.
"""

from __future__ import annotations

import inspect
import re
from typing import Any, get_args

from apache_polaris.sdk.catalog import models
from apache_polaris.sdk.catalog.api.iceberg_catalog_api import IcebergCatalogAPI
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

_SENT = re.compile(r"method='(?P<method>\w+)',\s+resource_path='(?P<path>[^']+)'")
_CHOICE = re.compile(r"(any|one)of_schema_\d+_validator")
_DISCRIMINATOR = ("value_class_map", "property_name")
_REF = "#/components/schemas/{model}"


def document() -> dict[str, Any]:
    """OpenAPI 3.1: `paths` with their parameters and bodies, `components` with the bodies' schemas."""
    bodies = {name: _body(getattr(IcebergCatalogAPI, name)) for name in _operations()}
    chosen = [kind for kind in vars(models).values() if isinstance(kind, type) and issubclass(kind, BaseModel)]
    _, told = models_json_schema([(kind, "validation") for kind in chosen], ref_template=_REF)
    schemas = _declared(told["$defs"])
    paths: dict[str, Any] = {}
    for name, (method, path) in _operations().items():
        operation: dict[str, Any] = {"operationId": name, "responses": {"default": {"description": "any"}}}
        operation["parameters"] = [
            {"name": part, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
            for part in re.findall(r"{([^}]+)}", path)
        ]
        if body := bodies[name]:
            content = {"application/json": {"schema": {"$ref": _REF.format(model=body)}}}
            operation["requestBody"] = {"required": True, "content": content}
        paths.setdefault(path, {})[method.lower()] = operation
    about = {"title": "Apache Iceberg REST Catalog API", "version": "0.0.1"}
    return {"openapi": "3.1.0", "info": about, "paths": paths, "components": {"schemas": schemas}}


def _operations() -> dict[str, tuple[str, str]]:
    """Method and path by the name of each operation."""
    found = {}
    for name, function in vars(IcebergCatalogAPI).items():
        if name.endswith("_serialize") and (sent := _SENT.search(inspect.getsource(function))):
            found[name.strip("_").removesuffix("_serialize")] = (sent["method"], sent["path"])
    return found


def _body(operation: Any) -> str | None:
    told = {k: v for k, v in inspect.get_annotations(inspect.unwrap(operation)).items() if k != "return"}
    kinds = [kind for each in told.values() for kind in (each, *get_args(each)[:1])]
    return next((kind.__name__ for kind in kinds if inspect.isclass(kind) and issubclass(kind, BaseModel)), None)


def _declared(schemas: dict[str, Any]) -> dict[str, Any]:
    """The schemas with the choices between them, each choice told by the value of a property where it is."""
    for name, schema in list(schemas.items()):
        own = f"_{name}__discriminator"
        by_value, told_by = (getattr(getattr(models, name, None), f"{own}_{what}", None) for what in _DISCRIMINATOR)
        for value, kind in (by_value or {}).items():
            chosen = schemas[kind]
            chosen["properties"][told_by] = {"const": value}
            chosen["required"] = sorted({*chosen.get("required", ()), told_by})
        choices = [part for name, part in schema.get("properties", {}).items() if _CHOICE.fullmatch(name)]
        if by_value:
            schemas[name] = {"anyOf": [{"$ref": _REF.format(model=kind)} for kind in by_value.values()]}
        elif choices:
            one_of = (next(one for one in part["anyOf"] if one != {"type": "null"}) for part in choices)
            schemas[name] = {"anyOf": list(one_of)}
    return schemas
