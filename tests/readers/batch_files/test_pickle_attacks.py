"""Pickles that ask for more than plain data: nothing of them is run, and each becomes one line soon."""

import io
import pickle
import struct
import time
import zipfile

import numpy as np
import pytest
from numpy.lib import format as npy_format

from penstock.config.errors import DataError
from penstock.config.sizes import MIB
from penstock.readers.batch_files import load_batch

TEXT = b"X%c\x00\x00\x00%s"
"""The opcode of a text, its length, and the text."""
CALLS = {
    "GLOBAL, REDUCE": b"cposix\nsystem\n(%(command)stR.",
    "STACK_GLOBAL, REDUCE": b"\x80\x04\x8c\x05posix\x8c\x06system\x93(%(command)stR.",
    "INST": b"(%(command)siposix\nsystem\n.",
    "OBJ": b"(cposix\nsystem\n%(command)so.",
    "NEWOBJ": b"\x80\x02cposix\nsystem\n(%(command)st\x81.",
    "NEWOBJ_EX": b"\x80\x04cposix\nsystem\n(%(command)st}\x92.",
    "BUILD of what may be named": b"c_codecs\nencode\n(cposix\nsystem\n(t}Ntb(%(command)stR.",
    "in an array": b"cnumpy.core.multiarray\n_reconstruct\n(tR(K\x01(K\x01tcposix\nsystem\n(%(command)stRtb.",
}


def refusal(tmp_path, content):
    (tmp_path / "old.pkl").write_bytes(content)
    with pytest.raises(DataError) as error:
        load_batch(tmp_path / "old.pkl", allow_pickle=True)
    (line,) = str(error.value).splitlines()
    return line.removeprefix(f"{tmp_path / 'old.pkl'}: ")


@pytest.mark.parametrize("opcodes", CALLS.values(), ids=CALLS.keys())
def test_every_opcode_that_can_call_something_is_refused(tmp_path, opcodes):
    command = f"touch {tmp_path / 'mark'}".encode()

    line = refusal(tmp_path, opcodes % {b"command": TEXT % (len(command), command)})

    assert line.startswith("its pickle asks for posix.system; only plain containers")
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    ("content", "asked_for"),
    [
        (pickle.dumps(np.frombuffer(b"A" * 16, "V8"), 2), "an array of type 'V8'"),
        (pickle.dumps(np.zeros(2, [("a", "f4"), ("b", "O")]), 2), "an array of type 'V12'"),
        (
            b"cnumpy\ndtype\n(X\x02\x00\x00\x00f4tR(K\x03X\x01\x00\x00\x00<(X\x01\x00\x00\x00atNNtb.",
            "an array of named fields",
        ),
        (
            pickle.dumps(np.array([1, None], object), 2).replace(b"K\x02\x85", b"K\x7f\x85"),
            "an array of values of",
        ),
        (b"cnumpy.core.multiarray\nscalar\n(NNtR.", "a number of an unknown type"),
        (b"c_codecs\nencode\n(X\x01\x00\x00\x00aX\x05\x00\x00\x00rot13tR.", "the encoding 'rot13'"),
        (b"Pfile\n.", "an object of another file"),
        (b"\x80\x04" + TEXT % (9, b"os\n\x1b[2J!!") + TEXT % (1, b"x") + b"\x93.", r"os\n\x1b[2J!!.x"),
    ],
)
def test_what_is_not_plain_is_refused_on_one_line(tmp_path, content, asked_for):
    assert refusal(tmp_path, content).startswith(f"its pickle asks for {asked_for}")


@pytest.mark.parametrize("content", [b"\x80\x05", pickle.dumps(list(range(1000)))[:-5], b"\x80\x02h\x00."])
def test_a_torn_pickle(tmp_path, content):
    assert refusal(tmp_path, content) == "is no whole pickle of plain data: it is cut short or damaged"


def many(item, kind=list):
    """Ten of ten of ten ... of an item: 300 bytes of a pickle, and a thousand million items to whoever looks."""
    for _ in range(9):
        item = kind([item] * 10)
    return item


def sample(features=(1.0,), label=1):
    return {"features": features, "labels": {"a": label}}


def packed_zeros():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, dtype, content in (
            ("samples", "|O", pickle.dumps([sample()])),
            ("labels", "<f4", bytes(128 * MIB)),
        ):
            header = io.BytesIO()
            shape = (1,) if dtype == "|O" else (32 * MIB,)
            npy_format.write_array_header_1_0(
                header, {"descr": dtype, "fortran_order": False, "shape": shape}
            )
            archive.writestr(f"{name}.npy", header.getvalue() + content)
    return stream.getvalue()


DEEP = b")" + b"\x85" * 300_000
BOMBS = {
    "deep tuples as a key": lambda: b"\x80\x04}" + DEEP + b"Ns.",
    "deep tuples in a set": lambda: b"\x80\x04\x8f(" + DEEP + b"\x90.",
    "deep lists": lambda: b"\x80\x02" + b"]" * 300_000 + b"a" * 299_999 + b".",
    "a list in itself": lambda: b"\x80\x04]\x94h\x00a.",
    "features": lambda: pickle.dumps([sample(many(1.0))]),
    "one sample, millions of times": lambda: pickle.dumps([sample([1.0] * 2000)] * 200_000),
    "long bytes": lambda: b"\x80\x04\x8e" + struct.pack("<Q", (1 << 31) - 1) + b".",
    "bytes of a number": lambda: b"cbuiltins\nbytearray\n(L9999999999L\ntR.",
    "packed zeros": packed_zeros,
}


@pytest.mark.parametrize("make", BOMBS.values(), ids=BOMBS.keys())
def test_a_bomb_is_one_line_soon_and_without_memory(tmp_path, make):
    began_at = time.process_time()

    assert refusal(tmp_path, make())

    assert time.process_time() - began_at < 10  # of this process: the other has its own limit
