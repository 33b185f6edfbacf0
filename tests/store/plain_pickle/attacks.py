"""Short files that ask for all the time, memory or stack there is; as a program, it reads each and says what came.

Run apart, with little memory: `python attacks.py FOLDER` prints a line of JSON for each.
"""

import io
import json
import pickle
import resource
import struct
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import psutil
from numpy.lib import format as npy_format

from penstock.config.errors import DataError
from penstock.config.sizes import MIB
from penstock.store.batch_file.files import load_batch

MOST_MORE_BYTES = 256 * MIB


def many(item, kind=list, levels=9):
    """Ten of ten of ten ... of an item: 300 bytes of a pickle, and 10 ** levels items to whoever looks at each."""
    for _ in range(levels):
        item = kind([item] * 10)
    return item


def object_array(items):
    array = np.empty(len(items), object)
    for place, item in enumerate(items):
        array[place] = item
    return array


def sample(features=(1.0,), label=1):
    return {"features": features, "labels": {"a": label}}


def long_length(opcode, form):
    return b"\x80\x04" + opcode + struct.pack(form, (1 << 31) - 1) + b"."


def packed(dtype, num_bytes):
    """An archive of one sample, and of zeros in another member."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("samples.npy", npy("|O", (1,)) + pickle.dumps([sample()]))
        with archive.open("labels.npy", "w") as member:
            member.write(npy(dtype, (num_bytes // np.dtype(dtype).itemsize,)))
            for _ in range(num_bytes // MIB):
                member.write(bytes(MIB))
    return stream.getvalue()


def npy(dtype, shape):
    stream = io.BytesIO()
    npy_format.write_array_header_1_0(stream, {"descr": dtype, "fortran_order": False, "shape": shape})
    return stream.getvalue()


def alike(num_keys, then):
    """Numbers that Python cannot tell apart without comparing each to all others."""
    modulus = sys.hash_info.modulus
    return b"".join(
        b"\x8a\x0b" + (place * modulus).to_bytes(11, "little") + then for place in range(num_keys)
    )


DEEP = b")" + b"\x85" * 300_000
LONG_TEXT = b"X" + struct.pack("<I", 100_000) + b"a" * 100_000 + b"\x94"
EMPTY_ROWS = (
    b"cnumpy.core.multiarray\n_reconstruct\n(tR(K\x01(L1000000000000L\nK\x00t"
    b"cnumpy\ndtype\n(X\x02\x00\x00\x00O8tR(K\x03X\x01\x00\x00\x00|NNNtbI00\n]tb."
)

ATTACKS = {
    "deep tuples as a key": (lambda: b"\x80\x04}" + DEEP + b"Ns.", "a tuple in a key"),
    "deep tuples in a set": (lambda: b"\x80\x04\x8f(" + DEEP + b"\x90.", "a tuple in a key"),
    "deep tuples in a frozen set": (lambda: b"\x80\x04(" + DEEP + b"\x91.", "a tuple in a key"),
    "deep tuples in a dict": (lambda: b"(" + DEEP + b"Nd.", "a tuple in a key"),
    "a set of deep tuples, by its name": (
        lambda: b"cbuiltins\nset\n](" + DEEP + b"e\x85R.",
        "a tuple in a key",
    ),
    "deep tuples as a name": (lambda: DEEP + DEEP + b"\x93.", "a name that is no text"),
    "deep lists": (lambda: b"]" * 300_000 + b"a" * 299_999 + b".", "more than 32 containers in one another"),
    "a list in itself": (lambda: b"\x80\x04]\x94h\x00a.", "more than 32 containers in one another"),
    "a far place of the memo": (lambda: b"]r\xff\xff\xff\x2f.", "there are no samples"),
    "features": (lambda: pickle.dumps([sample(many(1.0))]), "1,111,111,11"),
    "later features": (lambda: pickle.dumps([sample(), sample(many(1.0))]), "1,111,111,11"),
    "a label": (lambda: pickle.dumps([sample(label=many(1.0))]), "1,111,111,11"),
    "tuples": (lambda: pickle.dumps([sample(many(1.0, tuple))]), "1,111,111,11"),
    "tuples as a key": (lambda: b"}" + pickle.dumps(many(1.0, tuple))[:-1] + b"Ns.", "a tuple in a key"),
    "arrays of objects": (
        lambda: pickle.dumps(many(1.0, object_array)),
        "1,111,111,110 values, in 631 bytes",
    ),
    "one sample, millions of times": (
        lambda: pickle.dumps([sample([1.0] * 2000)] * 1_000_000),
        "2,004,000,000 values",
    ),
    "the object of another file": (lambda: pickle.dumps(many(1.0))[:-1] + b"Q.", "an object of another file"),
    "long bytes": (lambda: long_length(b"\x8e", "<Q"), "it is cut short"),
    "long text": (lambda: long_length(b"X", "<I"), "it is cut short"),
    "a long bytearray": (lambda: long_length(b"\x96", "<Q"), "it is cut short"),
    "a long number": (lambda: long_length(b"\x8b", "<I"), "it is cut short"),
    "a number of many bytes": (
        lambda: b"\x8b" + struct.pack("<I", MIB) + bytes(MIB) + b".",
        "a number of 1048576 bytes",
    ),
    "bytes of a number": (lambda: b"cbuiltins\nbytearray\n(L9999999999L\ntR.", "a bytearray of type int"),
    "the same long text, called again and again": (
        lambda: b"(" + LONG_TEXT + b"c_codecs\nencode\nh\x00X\x06\x00\x00\x00latin1\x86R" * 20_000 + b"l.",
        "the same values again and again",
    ),
    "the same many arguments, again and again": (
        lambda: b"((" + b"N" * 100_000 + b"t\x94cnumpy\nndarray\n\x94" + b"h\x01h\x00R" * 20_000 + b"l.",
        "the same values again and again",
    ),
    "a long key, again and again": (
        lambda: b"}(" + b"N" * 100_000 + b"t\x94Ns" + b"h\x00Ns" * 20_000 + b".",
        "a key of 100000 parts",
    ),
    "keys that are alike": (
        lambda: b"}(" + alike(100_000, b"N") + b"u.",
        "more than 2048 keys that are no text",
    ),
    "such keys, one by one": (
        lambda: b"}" + alike(100_000, b"Ns") + b".",
        "more than 2048 keys that are no text",
    ),
    "rows without values": (lambda: EMPTY_ROWS, "1,000,000,000,000 values"),
    "packed zeros": (lambda: packed("<f4", 128 * MIB), "array 'labels' would unpack "),
    "a packed pickle": (lambda: packed("|O", 128 * MIB), "array 'labels' would unpack "),
    "numbers of other lengths": (lambda: packed("<f4", 32 * MIB), "{'samples': 1, 'labels': 8388608}"),
}
"""Each with what the line about it must have in it."""


def answer(path):
    try:
        load_batch(path, allow_pickle=True)
    except DataError as error:
        return str(error)
    return "was read"


def main(folder):
    for place, (make, _) in enumerate(ATTACKS.values()):
        (folder / f"{place}.pkl").write_bytes(make())
    most_bytes = psutil.Process().memory_info().vms + MOST_MORE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))
    for place, name in enumerate(ATTACKS):
        start = time.process_time()
        line = answer(folder / f"{place}.pkl")
        print(json.dumps([name, line, time.process_time() - start]), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
