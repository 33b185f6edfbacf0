"""tf.train.Example for protobuf's own library, made from a description of its fields: a second opinion on any bytes."""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_FIELD = descriptor_pb2.FieldDescriptorProto


def _message(name: str, *fields: tuple[str, int, int, str, bool]) -> Any:
    """Each field: its name, number, type, the type's name, and whether it is repeated."""
    message = descriptor_pb2.DescriptorProto(name=name)
    for field_name, number, field_type, type_name, is_repeated in fields:
        label = _FIELD.LABEL_REPEATED if is_repeated else _FIELD.LABEL_OPTIONAL
        message.field.add(
            name=field_name, number=number, type=field_type, type_name=type_name or None, label=label
        )
    return message


def example_class() -> Any:
    """The class of messages; `Example().features.feature` is a map of features."""
    feature = _message(
        "Feature",
        ("bytes_list", 1, _FIELD.TYPE_MESSAGE, ".example.BytesList", False),
        ("float_list", 2, _FIELD.TYPE_MESSAGE, ".example.FloatList", False),
        ("int64_list", 3, _FIELD.TYPE_MESSAGE, ".example.Int64List", False),
    )
    feature.oneof_decl.add(name="kind")
    for field in feature.field:
        field.oneof_index = 0
    entry = _message(
        "FeatureEntry",
        ("key", 1, _FIELD.TYPE_STRING, "", False),
        ("value", 2, _FIELD.TYPE_MESSAGE, ".example.Feature", False),
    )
    entry.options.map_entry = True
    features = _message(
        "Features", ("feature", 1, _FIELD.TYPE_MESSAGE, ".example.Features.FeatureEntry", True)
    )
    features.nested_type.add().CopyFrom(entry)
    messages = [
        _message("BytesList", ("value", 1, _FIELD.TYPE_BYTES, "", True)),
        _message("FloatList", ("value", 1, _FIELD.TYPE_FLOAT, "", True)),
        _message("Int64List", ("value", 1, _FIELD.TYPE_INT64, "", True)),
        feature,
        features,
        _message("Example", ("features", 1, _FIELD.TYPE_MESSAGE, ".example.Features", False)),
    ]
    file = descriptor_pb2.FileDescriptorProto(name="example.proto", package="example", syntax="proto3")
    file.message_type.extend(messages)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("example.Example"))
