"""JSON Schema of a run file, for editors and for people."""

from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from penstock.config.field_docs import field_docs
from penstock.config.markers import Ignored, Later, Legacy, Marker, Refused
from penstock.config.section import Section
from penstock.config.shape import fields_of


def json_schema(root: type[Section]) -> dict[str, Any]:
    """The schema of a root section: types, defaults, descriptions from docstrings, and one-of groups."""
    schema = root.model_json_schema(by_alias=True, schema_generator=_Generator)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


class _Generator(GenerateJsonSchema):
    """Adds what pydantic does not know: one-of groups, markers, and that a run file holds no null."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """A section with its one-of groups and what its markers say."""
        result = super().model_schema(schema)
        section = schema["cls"]
        if issubclass(section, Section) and "properties" in result:
            _describe(result, section)
        return result

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        """What is optional is left out, not null."""
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """None means that there is no default."""
        result = super().default_schema(schema)
        if result.get("default", 0) is None:
            del result["default"]
        return result


def _describe(result: JsonSchemaValue, section: type[Section]) -> None:
    fields = fields_of(section)
    keys = {field.name: key for key, field in fields.items()}
    groups = [
        _one_of(section, group, [keys[name] for name in names]) for group, names in section.one_of.items()
    ]
    if groups:
        result["allOf"] = groups
    docs = field_docs(section)
    for key, field in fields.items():
        note = result["properties"][key]
        texts = [docs.get(field.name), *(_words(marker) for marker in field.markers)]
        if any(texts):
            note["description"] = " ".join(filter(None, texts))
        if any(isinstance(marker, Ignored | Legacy | Refused) for marker in field.markers):
            note["deprecated"] = True


def _one_of(section: type[Section], group: str, keys: list[str]) -> dict[str, Any]:
    """Exactly one of the keys, or none of them where the group is not required."""
    choices: list[dict[str, Any]] = [{"required": [key]} for key in keys]
    if group not in section.required_one_of:
        choices.append({"not": {"anyOf": [{"required": [key]} for key in keys]}})
    return {"description": f"one of: {group}", "oneOf": choices}


def _words(marker: Marker) -> str:
    if isinstance(marker, Later):
        return f"Not available yet: {marker.what}."
    if isinstance(marker, Legacy):
        return f"Old name; use {marker.new_name} instead."
    return f"{'Ignored' if isinstance(marker, Ignored) else 'Cannot be used'}: {marker.reason}."
