"""Random valid sections of any schema, for property tests."""

from typing import Any, TypeVar

from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from pydantic import ValidationError

from penstock.config.errors import KeyPath
from penstock.config.load import KeyCheck, value_problems
from penstock.config.section import Section
from penstock.config.shape import (
    AnyShape,
    EnumShape,
    ListShape,
    MapShape,
    ScalarShape,
    SectionShape,
    Shape,
    SizeShape,
    UnionShape,
    fields_of,
)

S = TypeVar("S", bound=Section)

_ODD_STRINGS = ["", "\x00\x7f", "null", "1e-4", "no", "<<", "# a", "a: b", "\\x03", "é\u2028😀", *" \x03~\"'"]
_TEXT = st.text(max_size=12) | st.sampled_from(_ODD_STRINGS)
# Most fields want small positive numbers; the others show that nothing is lost at the edges.
_SCALARS: dict[type, SearchStrategy[Any]] = {
    bool: st.booleans(),
    int: st.integers(1, 4) | st.integers(1, 64) | st.integers(-(1 << 63), (1 << 63) - 1),
    float: st.floats(0.01, 0.99) | st.floats(allow_nan=False) | st.integers(-9, 9),
    str: _TEXT,
}
_SIZE = st.integers(0, 1 << 50) | st.sampled_from(["64MiB", "4GiB", "10MB", "1.5 GiB"])
_FREE = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1) | st.floats(allow_nan=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=6,
)
_MAX_REPAIRS = 60


@st.composite
def section_strategy(draw: DrawFn, root: type[S], max_depth: int = 6, max_fields: int = 6) -> S:
    """A valid section of this class, as a run file could have written it.

    Data are drawn from the shape of the class; what its validators refuse is taken out again.
    """
    section = repaired(draw(_section_data(root, max_depth, max_fields)), root)
    assume(section is not None)
    assert section is not None
    return section


def repaired(data: dict[str, Any], root: type[S]) -> S | None:
    """The section that is left when all that its validators refuse is taken out; None: too much is refused."""
    for _ in range(_MAX_REPAIRS):
        keys = KeyCheck()
        keys.section(data, root)
        problems = keys.problems
        if not problems:
            try:
                return root.model_validate(data)
            except ValidationError as error:
                # Not pydantic's own locations: they also hold notes such as '[key]', which are no places in the data.
                problems = value_problems(error, root)
        for problem in problems:
            _take_out(data, problem.path)
    return None


@st.composite
def _section_data(draw: DrawFn, section: type[Section], depth: int, max_fields: int) -> dict[str, Any]:
    fields = fields_of(section)
    in_group = {name for members in section.one_of.values() for name in members}
    required = [key for key, field in fields.items() if field.info.is_required()]
    optional = [key for key, field in fields.items() if key not in required and field.name not in in_group]
    chosen = list(required)
    if depth > 0 and optional:
        chosen += draw(st.lists(st.sampled_from(optional), unique=True, max_size=max_fields))
    by_name = {field.name: field.key for field in fields.values()}
    for group, members in section.one_of.items():
        if group in section.required_one_of or (depth > 0 and draw(st.booleans())):
            chosen.append(by_name[draw(st.sampled_from(members))])
    return {key: draw(_data(fields[key].shape, depth - 1, max_fields)) for key in chosen}


def _data(shape: Shape, depth: int, max_fields: int) -> SearchStrategy[Any]:
    if isinstance(shape, SectionShape):
        return _section_data(shape.section, depth, max_fields)
    if isinstance(shape, ListShape):
        return st.lists(_data(shape.item, depth, max_fields), max_size=3)
    if isinstance(shape, MapShape):
        return st.dictionaries(_TEXT, _data(shape.value, depth, max_fields), max_size=3)
    if isinstance(shape, UnionShape):
        return st.one_of([_data(member, depth, max_fields) for member in shape.members])
    if isinstance(shape, EnumShape):
        return st.sampled_from(shape.names)
    if isinstance(shape, ScalarShape):
        return _SCALARS[shape.type]
    return _SIZE if isinstance(shape, SizeShape) else _FREE if isinstance(shape, AnyShape) else st.nothing()


def _take_out(data: Any, place: KeyPath) -> None:
    """Removes what stands at a place; where nothing stands, what is around it."""
    holder, key = None, None
    current = data
    for part in place:
        if isinstance(current, list):
            # Items move up when one before them is taken out: a place may then lead into an item of another kind.
            is_there = isinstance(part, int) and part < len(current)
        else:
            is_there = isinstance(current, dict) and part in current
        if not is_there:
            break
        holder, key, current = current, part, current[part]
    if holder is None:
        data.clear()
    else:
        del holder[key]
