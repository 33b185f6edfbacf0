"""JSON Schema of a run file, for editors and for people."""

import ast
import inspect
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from penstock.config.section import Ignored, Legacy, Refused, Section
from penstock.config.shape import fields_of


def json_schema(root: type[Section]) -> dict[str, Any]:
    """The schema of a root section: types, defaults, descriptions from docstrings, and one-of groups."""
    schema = root.model_json_schema(by_alias=True, schema_generator=_Generator)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


class _Generator(GenerateJsonSchema):
    """Adds what pydantic does not know: one-of groups, markers, and that a run file holds no null."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        result = super().model_schema(schema)
        section = schema["cls"]
        if issubclass(section, Section) and "properties" in result:
            _describe(result, section)
        return result

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        # What is optional is left out, not null.
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        result = super().default_schema(schema)
        if result.get("default", 0) is None:
            del result["default"]
        return result


def _describe(result: JsonSchemaValue, section: type[Section]) -> None:
    fields = fields_of(section)
    keys = {field.name: key for key, field in fields.items()}
    for group, names in section.one_of.items():
        members = [{"required": [keys[name]]} for name in names]
        none = [] if group in section.required_one_of else [{"not": {"anyOf": members}}]
        choice = {"description": f"one of: {group}", "oneOf": [*members, *none]}
        result.setdefault("allOf", []).append(choice)
    docs = field_docs(section)
    for key, field in fields.items():
        note = result["properties"][key]
        texts = [docs.get(field.name) or field.info.description, *(marker.note for marker in field.markers)]
        if any(texts):
            note["description"] = " ".join(filter(None, texts))
        if any(isinstance(marker, Ignored | Legacy | Refused) for marker in field.markers):
            note["deprecated"] = True


@cache
def field_docs(section: type[Section]) -> Mapping[str, str]:
    """The docstring under each field that has one; a field that is declared again has its newest.

    Python does not keep them, so they are read from the source, and only when someone asks: pydantic can do the
    same for every class at import, which would make every command wait for what only `penstock schema` shows.
    """
    docs: dict[str, str] = {}
    for owner in reversed(section.__mro__):
        if issubclass(owner, Section):
            docs.update(_docs_of_module(owner.__module__).get(owner.__name__, {}))
    return {name: docs[name] for name in section.model_fields if name in docs}


@cache
def _docs_of_module(name: str) -> Mapping[str, Mapping[str, str]]:
    try:
        tree = ast.parse(inspect.getsource(sys.modules[name]))
    except (OSError, TypeError, KeyError):  # a class made at a prompt, or shipped without its source
        return {}
    docs: dict[str, dict[str, str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            docs[node.name] = {}
            for field, after in zip(node.body, node.body[1:], strict=False):
                match field, after:
                    case ast.AnnAssign(target=ast.Name(id=key)), ast.Expr(ast.Constant(str(text))):
                        docs[node.name][key] = inspect.cleandoc(text)
    return docs
