"""What a pickle may hold, and what it may ask for: plain data comes as Python's own unpickler has it, the rest not."""

import collections
import copyreg
import io
import os
import pickle
import pickletools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.config.errors import DataError
from penstock.store.plain_pickle.reading import read_plain_pickle
from penstock.store.plain_pickle.values import shown

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
SINGLE = st.none() | st.booleans() | st.integers(-(1 << 70), 1 << 70) | st.text() | st.binary()
SINGLE |= st.floats(allow_nan=False) | st.complex_numbers(allow_nan=False)
PLAIN = st.recursive(
    SINGLE,
    lambda items: (
        st.lists(items)
        | st.lists(items).map(tuple)
        | st.dictionaries(SINGLE | st.tuples(SINGLE, SINGLE), items)
        | st.sets(SINGLE)
        | st.frozensets(SINGLE)
        | items.map(lambda item: [item, item])
    ),
)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("write", [pickle.dumps, pickle._dumps])
@settings(max_examples=40)
@given(value=PLAIN)
def test_plain_data_is_itself(write, protocol, value):
    for content in (write(value, protocol), pickletools.optimize(write(value, protocol))):
        assert read_plain_pickle(io.BytesIO(content), "old.pkl") == value


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_long_lists_of_numbers(protocol):
    """Longer than any stretch that is taken at once."""
    values = [0.5, 3, 300, 70_000, 1 << 40, -1, True, None] * 2000

    for value in (values, tuple(values), {"a": values, "b": values}):
        found = read_plain_pickle(io.BytesIO(pickle.dumps(value, protocol)), "old.pkl")
        assert found == value


TEXT = b"X%c\x00\x00\x00%s"
"""The opcode of a text, its length, and the text."""
NAMED_ONE_BY_ONE = {
    "GLOBAL, REDUCE": b"cposix\nsystem\n(%(command)stR.",
    "STACK_GLOBAL, REDUCE": b"\x80\x04\x8c\x05posix\x8c\x06system\x93(%(command)stR.",
    "INST": b"(%(command)siposix\nsystem\n.",
    "OBJ": b"(cposix\nsystem\n%(command)so.",
    "NEWOBJ": b"\x80\x02cposix\nsystem\n(%(command)st\x81.",
    "NEWOBJ_EX": b"\x80\x04cposix\nsystem\n(%(command)st}\x92.",
    "EXT1": b"\x80\x02\x82\xf0(%(command)stR.",
    "BUILD of what may be named": b"c_codecs\nencode\n(cposix\nsystem\n(t}Ntb(%(command)stR.",
    "in a list": b"](cposix\nsystem\n(%(command)stRe.",
    "in an array": b"cnumpy.core.multiarray\n_reconstruct\n(tR(K\x01(K\x01tcposix\nsystem\n(%(command)stRtb.",
}


NOT_BY_NAME = {"INST": "an object of a class", "EXT1": "an entry of Python's extension registry"}


@pytest.mark.parametrize(("name", "opcodes"), NAMED_ONE_BY_ONE.items(), ids=NAMED_ONE_BY_ONE.keys())
def test_every_opcode_that_can_call_something_is_refused(tmp_path, name, opcodes):
    command = f"touch {tmp_path / 'mark'}".encode()
    content = opcodes % {b"command": TEXT % (len(command), command)}
    asked_for = NOT_BY_NAME.get(name, r"posix\.system")
    copyreg.add_extension("posix", "system", 0xF0)
    try:
        with pytest.raises(DataError, match=rf"its pickle asks for {asked_for}; .* nothing of it was run"):
            read_plain_pickle(io.BytesIO(content), "old.pkl")
    finally:
        copyreg.remove_extension("posix", "system", 0xF0)

    assert not (tmp_path / "mark").exists()


def test_an_extension_that_python_knows_by_now_is_not_called():
    """Python keeps what a code of the registry stands for, and asks nobody when it comes again."""
    copyreg.add_extension("os", "getcwd", 0xF1)
    try:
        assert pickle.loads(b"\x80\x02\x82\xf1)R.") == os.getcwd()  # noqa: S301
        with pytest.raises(DataError, match="asks for an entry of Python's extension registry"):
            read_plain_pickle(io.BytesIO(b"\x80\x02\x82\xf1)R."), "old.pkl")
    finally:
        copyreg.remove_extension("os", "getcwd", 0xF1)


def raw_pointers():
    """An array of objects whose type claims to be eight plain bytes each, made of bytes that are no objects."""
    dtype = np.dtype("V8")
    array = np.frombuffer(b"\x41" * 16, dtype)
    return pickle.dumps(array, 2)


@pytest.mark.parametrize(
    ("content", "asked_for"),
    [
        (raw_pointers(), "an array of type 'V8'"),
        (pickle.dumps(np.zeros(2, [("a", "f4"), ("b", "O")]), 2), "an array of type 'V12'"),
        (pickle.dumps(collections.Counter("ab")), "collections.Counter"),
        (pickle.dumps(os.path.join), "posixpath.join"),
        (b"\x80\x02cos.path\njoin\n.", "os.path.join"),
        (b"\x80\x04\x8c\x08builtins\x8c\x0cset.__init__\x93.", "builtins.set.__init__"),
        (b"cbuiltins\nbytearray\n(L99999999999999L\ntR.", "a bytearray of type int"),
        (
            b"cnumpy\ndtype\n(X\x02\x00\x00\x00f4tR(K\x03X\x01\x00\x00\x00<(X\x01\x00\x00\x00atNNtb.",
            "an array of named fields",
        ),
        (b"cnumpy.core.multiarray\n_reconstruct\n(tR(K\x01(K\x01tNI00\nNtb.", "an array of an unknown type"),
        (b"cnumpy.core.multiarray\nscalar\n(NNtR.", "a number of an unknown type"),
        (b"c_codecs\nencode\n(X\x01\x00\x00\x00aX\x05\x00\x00\x00rot13tR.", "the encoding 'rot13'"),
        (b"Pfile\n.", "an object of another file"),
    ],
)
def test_what_is_not_plain_is_refused(content, asked_for):
    with pytest.raises(DataError) as error:
        read_plain_pickle(io.BytesIO(content), "old.pkl")

    assert str(error.value).startswith(f"old.pkl: its pickle asks for {asked_for};")


@pytest.mark.parametrize(
    "name", ["numpy\ndtype", "numpy\nndarray", "_codecs\nencode", "collections\nOrderedDict"]
)
def test_a_pickle_cannot_change_what_it_may_name(name):
    """The opcode BUILD sets attributes of whatever is named before it: here `dtype` to 1."""
    content = b"\x80\x02c" + name.encode() + b"\nN}(X\x05\x00\x00\x00dtypeK\x01u\x86b."

    with pytest.raises(DataError, match="its pickle asks for attributes of what is no array;"):
        read_plain_pickle(io.BytesIO(content), "old.pkl")

    assert read_plain_pickle(io.BytesIO(pickle.dumps(np.float32(3))), "old.pkl") == 3


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_containers_in_every_protocol(protocol):
    value = [bytearray(b"\x00\x01\xff"), {1, 2}, frozenset({3}), collections.OrderedDict(a=1), 1j]

    assert read_plain_pickle(io.BytesIO(pickle.dumps(value, protocol)), "old.pkl") == value


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f4", ">i2", "?", "<U4", "S3"])
def test_arrays_are_themselves(order, dtype):
    array = np.arange(6).reshape(2, 3).astype(dtype, order=order)

    found = read_plain_pickle(io.BytesIO(pickle.dumps(array)), "old.pkl")

    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize(
    "content", [b"", b"\x80\x05", pickle.dumps(list(range(1000)))[:-5], pickle.dumps(0.5)[:-3], b"h\x00."]
)
def test_a_torn_pickle(content):
    with pytest.raises(
        DataError, match=r"old\.pkl: is no whole pickle of plain data: it is cut short or damaged"
    ):
        read_plain_pickle(io.BytesIO(content), "old.pkl")


def test_text_of_a_file_is_shown_on_one_short_line():
    """A name of the file would clear the screen, and say that all is well."""
    name = b"os\nerror: everything is fine\x1b[2J"
    content = b"\x80\x04" + TEXT % (len(name), name) + TEXT % (1, b"x") + b"\x93."

    with pytest.raises(DataError) as error:
        read_plain_pickle(io.BytesIO(content), "old.pkl")

    assert str(error.value).startswith(
        r"old.pkl: its pickle asks for os\nerror: everything is fine\x1b[2J.x; only"
    )
    assert shown("a" * 100) == "a" * 80 + "..."
