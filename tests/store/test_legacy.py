"""Batch files of old: recognised, refused, and with leave converted; what a pickle asks for is not run."""

import collections
import contextlib
import copyreg
import io
import os
import pickle
import resource

import numpy as np
import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.config.errors import DataError
from penstock.config.sizes import GIB
from penstock.store.batch_file import is_pickled, load_batch, read_array, read_header, save_batch
from penstock.store.plain_pickle import read_plain_pickle
from penstock.store.samples import arrays_to_samples
from penstock.store.schema import sample_schema
from tests.store.samples import assert_same, game_arrays


def of_lists():
    return list(arrays_to_samples(game_arrays()))


def of_arrays():
    return [
        {
            "features": np.array(sample["features"]),
            "labels": {head: np.int64(label) for head, label in sample["labels"].items()},
            "masks": {head: np.array(mask, bool) for head, mask in sample["masks"].items()},
        }
        for sample in of_lists()
    ]


def side_by_side():
    return [
        {
            "strategic_features": sample["features"],
            **{f"labels_{head}": label for head, label in sample["labels"].items()},
            **{f"masks_{head}": mask for head, mask in sample["masks"].items()},
        }
        for sample in of_lists()
    ]


def save_pickle(path, samples):
    path.write_bytes(pickle.dumps(samples))


def save_npy(path, samples):
    with path.open("wb") as stream:
        np.save(stream, np.array(samples, dtype=object), allow_pickle=True)


def save_npz(path, samples):
    with path.open("wb") as stream:
        np.savez(stream, samples=np.array(samples, dtype=object))


def save_compressed(path, samples):
    with path.open("wb") as stream:
        np.savez_compressed(stream, samples)


def save_parts(path, samples):
    parts = {key: np.array([sample[key] for sample in samples], dtype=object) for key in samples[0]}
    with path.open("wb") as stream:
        np.savez(stream, **parts)


EVERY_FILE = [
    (save, make)
    for save in (save_pickle, save_npy, save_npz, save_compressed)
    for make in (of_lists, of_arrays, side_by_side)
] + [(save_parts, of_lists), (save_parts, of_arrays)]


@pytest.mark.parametrize(("save", "make"), EVERY_FILE)
def test_old_files_are_recognised_and_converted_with_leave(tmp_path, save, make):
    path = tmp_path / "batch_0000"
    save(path, make())

    assert is_pickled(path)
    with pytest.raises(DataError, match=r"batch_0000: holds pickled samples, .* --allow-pickle"):
        load_batch(path)
    assert_same(load_batch(path, allow_pickle=True), game_arrays())


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_protocol(tmp_path, protocol):
    (tmp_path / "old.pkl").write_bytes(pickle.dumps(of_arrays(), protocol))

    assert_same(load_batch(tmp_path / "old.pkl", allow_pickle=True), game_arrays())


def test_pickles_of_older_numpy_name_other_modules(tmp_path):
    old = pickle.dumps(of_arrays(), 2).replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
    (tmp_path / "old.pkl").write_bytes(old)

    assert_same(load_batch(tmp_path / "old.pkl", allow_pickle=True), game_arrays())


def test_parts_side_by_side_may_be_of_numbers(tmp_path):
    samples = of_lists()
    features = np.array([sample["features"] for sample in samples], np.float32, order="F")
    parts = {key: np.array([sample[key] for sample in samples], object) for key in ("labels", "masks")}
    np.savez(tmp_path / "old.npz", features=features, **parts)

    assert_same(load_batch(tmp_path / "old.npz", allow_pickle=True), game_arrays())

    np.savez(tmp_path / "old.npz", features=features[:-1], **parts)
    with pytest.raises(
        DataError, match=r"old\.npz: its parts have different numbers of samples: {'features': 4,"
    ):
        load_batch(tmp_path / "old.npz", allow_pickle=True)


def test_a_header_of_an_old_file_is_refused_as_its_values_are(tmp_path):
    save_pickle(tmp_path / "old.pkl", of_lists())
    save_npz(tmp_path / "old.npz", of_lists())
    header = read_header(tmp_path / "old.npz")

    with pytest.raises(DataError, match=r"old\.pkl: holds pickled samples"):
        read_header(tmp_path / "old.pkl")
    with pytest.raises(DataError, match=r"old\.npz: holds pickled samples"):
        read_array(header, header.array("samples"))


def test_a_schema_rules_over_the_first_sample(tmp_path):
    save_npz(tmp_path / "old.npz", of_lists())
    heads = {"action_type": 4, "target": 3}
    schema = sample_schema(6, list(heads), heads, feature_dtype=np.float64)

    loaded = load_batch(tmp_path / "old.npz", allow_pickle=True, schema=schema)

    assert loaded["strategic_features"].dtype == np.float64


def test_bad_samples_are_named(tmp_path):
    samples = of_lists()
    samples[3]["labels"]["target"] = 99999
    save_npz(tmp_path / "old.npz", samples)

    with pytest.raises(
        DataError, match=r"old\.npz: sample 3: labels: head 'target': 99999 does not fit int16"
    ):
        load_batch(tmp_path / "old.npz", allow_pickle=True)


@pytest.mark.parametrize("save", [save_pickle, save_npy, save_npz, save_compressed])
@settings(max_examples=50, deadline=None)
@given(position=st.integers(0, 1 << 20), flipped=st.integers(1, 255))
def test_a_damaged_old_file_is_one_line_if_it_is_noticed(tmp_path_factory, save, position, flipped):
    path = tmp_path_factory.mktemp("flip") / "old.pkl"
    save(path, of_arrays())
    content = bytearray(path.read_bytes())
    content[position % len(content)] ^= flipped
    path.write_bytes(content)

    with at_most_more_bytes(GIB), contextlib.suppress(DataError):
        load_batch(path, allow_pickle=True)


@contextlib.contextmanager
def at_most_more_bytes(num_bytes):
    """Python's own unpickler makes room for any number that a damaged pickle gives as a place of its memo."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (psutil.Process().memory_info().vms + num_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


@pytest.mark.parametrize("item", [3, "a", {1: 2}, {(1, 2): [3]}, None])
def test_what_is_no_sample_is_told(tmp_path, item):
    save_pickle(tmp_path / "old.pkl", [item])

    with pytest.raises(DataError, match=r"old\.pkl: sample 0: is no sample; give a dict with 'features'"):
        load_batch(tmp_path / "old.pkl", allow_pickle=True)


def test_new_files_are_none_of_old(tmp_path):
    for layout in ("native", "npz"):
        save_batch(tmp_path / "b", game_arrays(), layout=layout)
        assert not is_pickled(tmp_path / "b")
    np.save(tmp_path / "x.npy", np.zeros(3))
    with pytest.raises(DataError, match=r"x\.npy: is no batch file"):
        read_header(tmp_path / "x.npy")


class Malicious:
    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


MALICIOUS = [
    (os.system, "touch {mark}"),
    (eval, "open({mark!r}, 'w')"),
    (exec, "open({mark!r}, 'w')"),
    (open, "{mark}", "w"),
    (getattr, os, "system"),
    (__import__, "os"),
    (np.load, "{mark}"),
    (np.save, "{mark}", [1]),
]


@pytest.mark.parametrize("call", MALICIOUS, ids=lambda call: call[0].__name__)
@pytest.mark.parametrize("save", [save_pickle, save_npy, save_npz])
def test_a_malicious_pickle_does_nothing(tmp_path, save, call):
    mark = tmp_path / "mark.npy"
    function, *arguments = call
    if os in arguments:
        arguments = ["os", "system"]
    arguments = [item.format(mark=str(mark)) if isinstance(item, str) else item for item in arguments]
    save(tmp_path / "old", [Malicious(function, *arguments)])

    with pytest.raises(
        DataError, match=r"its pickle asks for .*; only plain containers, .* nothing of it was run"
    ):
        load_batch(tmp_path / "old", allow_pickle=True)

    assert not mark.exists()


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


@pytest.mark.parametrize(
    "value", [(1, 2.5, "a", b"b", None, True), [{"a": {1, 2}}, bytearray(b"x")], 1 << 80]
)
def test_plain_data_is_itself(value):
    assert read_plain_pickle(io.BytesIO(pickle.dumps(value)), "old.pkl") == value


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_containers_in_every_protocol(protocol):
    value = [bytearray(b"\x00\x01\xff"), {1, 2}, frozenset({3}), collections.OrderedDict(a=1), 1j]

    assert read_plain_pickle(io.BytesIO(pickle.dumps(value, protocol)), "old.pkl") == value


def test_what_many_samples_share_is_theirs(tmp_path):
    """As a mask that allows everything is, where the program that wrote the file had one for all samples."""
    mask, array, label = [1] * 1000, np.ones(500, bool), np.int64(3)
    masks = {"move": mask, "target": array}
    samples = [{"features": [0.5], "labels": {"move": label}, "masks": masks} for _ in range(2000)]
    save_npy(tmp_path / "old.npy", samples)

    loaded = load_batch(tmp_path / "old.npy", allow_pickle=True)

    assert loaded["masks_move"].shape == (2000, 1000)
    assert loaded["masks_move"].all()
    assert loaded["masks_target"].shape == (2000, 500)
    assert loaded["masks_target"].all()
    assert (loaded["labels_move"] == 3).all()


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


@pytest.mark.parametrize("content", [{"a": 1, "b": 2}, 3, np.zeros((2, 2), object)])
def test_pickles_of_something_else(tmp_path, content):
    (tmp_path / "old.pkl").write_bytes(pickle.dumps(content))

    with pytest.raises(DataError, match=r"old\.pkl: holds no list of samples but a"):
        load_batch(tmp_path / "old.pkl", allow_pickle=True)
