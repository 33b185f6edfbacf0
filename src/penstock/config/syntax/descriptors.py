"""Sections -> protobuf messages, made at run time, so that nobody needs protoc.

| section                     | message                          |
|-----------------------------|----------------------------------|
| int, float, bool, str       | int64, double, bool, string      |
| enum                        | enum of the same names           |
| size, union                 | string (bare values are set aside, see text_walk) |
| list, dict                  | repeated, map                    |
| section                     | message                          |
| dict of anything, Any       | google.protobuf.Struct, Value    |

All fields are optional with presence, as in proto2, so that only what the text writes is found in the
message.
"""

from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, struct_pb2
from google.protobuf.message import Message

from penstock.config.section import Section
from penstock.config.shape import (
    AnyShape,
    EnumShape,
    ListShape,
    MapShape,
    ScalarShape,
    SectionShape,
    Shape,
    fields_of,
    is_free_element,
)

_PACKAGE = "penstock_run_file"
_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    bool: _Field.TYPE_BOOL,
    int: _Field.TYPE_INT64,
    float: _Field.TYPE_DOUBLE,
    str: _Field.TYPE_STRING,
}


@cache
def message_class(root: type[Section]) -> type[Message]:
    """The message class of a root section."""
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(struct_pb2.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(_file_of(root).SerializeToString())
    descriptor = pool.FindMessageTypeByName(f"{_PACKAGE}.{_message_name(root)}")
    return message_factory.GetMessageClass(descriptor)


def data_of(message: Any, section: type[Section]) -> dict[str, Any]:
    """The fields that a message really holds, as plain data."""
    fields = fields_of(section)
    return {
        descriptor.name: _value(value, fields[descriptor.name].shape, descriptor)
        for descriptor, value in message.ListFields()
    }


def _file_of(root: type[Section]) -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(
        name=f"{_message_name(root)}.proto", package=_PACKAGE, dependency=["google/protobuf/struct.proto"]
    )
    for section in _reachable(root):
        message = file.message_type.add(name=_message_name(section))
        for number, (key, field) in enumerate(fields_of(section).items(), start=1):
            _add_field(message, key, number, field.shape)
    return file


def _reachable(root: type[Section]) -> list[type[Section]]:
    found = {root: None}
    waiting = [root]
    while waiting:
        for field in fields_of(waiting.pop()).values():
            shape = field.shape
            while isinstance(shape, ListShape | MapShape):
                shape = shape.item if isinstance(shape, ListShape) else shape.value
            if isinstance(shape, SectionShape) and shape.section not in found:
                found[shape.section] = None
                waiting.append(shape.section)
    return list(found)


def _add_field(message: descriptor_pb2.DescriptorProto, key: str, number: int, shape: Shape) -> None:
    field = message.field.add(name=key, number=number, label=_Field.LABEL_OPTIONAL)
    if isinstance(shape, ListShape):
        field.label = _Field.LABEL_REPEATED
        shape = shape.item
        if is_free_element(shape):
            shape = AnyShape()
    if not isinstance(shape, MapShape):
        _set_type(field, shape, message)
    elif is_free_element(shape.value):
        field.type, field.type_name = _Field.TYPE_MESSAGE, ".google.protobuf.Struct"
    else:
        field.label = _Field.LABEL_REPEATED
        field.type, field.type_name = _Field.TYPE_MESSAGE, _add_map_entry(message, key, shape)


def _add_map_entry(message: descriptor_pb2.DescriptorProto, key: str, shape: MapShape) -> str:
    entry = message.nested_type.add(name="".join(part.capitalize() for part in key.split("_")) + "Entry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=_Field.LABEL_OPTIONAL, type=_Field.TYPE_STRING)
    value = entry.field.add(name="value", number=2, label=_Field.LABEL_OPTIONAL)
    _set_type(value, shape.value, entry)
    return f"{message.name}.{entry.name}"


def _set_type(field: Any, shape: Shape, owner: descriptor_pb2.DescriptorProto) -> None:
    if isinstance(shape, SectionShape):
        field.type, field.type_name = _Field.TYPE_MESSAGE, f".{_PACKAGE}.{_message_name(shape.section)}"
    elif isinstance(shape, AnyShape):
        field.type, field.type_name = _Field.TYPE_MESSAGE, ".google.protobuf.Value"
    elif isinstance(shape, EnumShape):
        field.type, field.type_name = _Field.TYPE_ENUM, _add_enum(owner, field.name, shape)
    else:
        field.type = _SCALARS[shape.type] if isinstance(shape, ScalarShape) else _Field.TYPE_STRING


def _add_enum(owner: descriptor_pb2.DescriptorProto, key: str, shape: EnumShape) -> str:
    """An enum in a message of its own: in protobuf the names of an enum live in the scope around it."""
    scope = owner.nested_type.add(name=f"{key}__scope")
    enum = scope.enum_type.add(name="Names")
    for number, name in enumerate(shape.names):
        enum.value.add(name=name, number=number)
    return f"{scope.name}.Names"


def _message_name(section: type[Section]) -> str:
    return f"{section.__module__}.{section.__qualname__}".replace(".", "__").replace("<locals>", "locals")


def _value(value: Any, shape: Shape, descriptor: Any) -> Any:
    if isinstance(shape, ListShape):
        item = AnyShape() if is_free_element(shape.item) else shape.item
        return [_value(element, item, descriptor) for element in value]
    if isinstance(shape, MapShape):
        if is_free_element(shape.value):
            return {key: _free_value(value.fields[key]) for key in value.fields}
        entry = descriptor.message_type.fields_by_name["value"]
        return {key: _value(value[key], shape.value, entry) for key in value}
    if isinstance(shape, SectionShape):
        return data_of(value, shape.section)
    if isinstance(shape, EnumShape):
        return descriptor.enum_type.values_by_number[value].name
    return _free_value(value) if isinstance(shape, AnyShape) else value


def _free_value(value: Any) -> Any:
    """The Python value in a google.protobuf.Value; a number without fraction is an integer, as in JSON."""
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return {key: _free_value(value.struct_value.fields[key]) for key in value.struct_value.fields}
    if kind == "list_value":
        return [_free_value(item) for item in value.list_value.values]
    if kind == "number_value" and value.number_value.is_integer() and abs(value.number_value) < 1 << 53:
        return int(value.number_value)
    return None if kind in (None, "null_value") else getattr(value, kind)
