"""Random numbers that depend on names and places, never on what was drawn before.

Every draw starts from `generator(seed, "clicks.rows", 17)`: the same seed, name and index give the same
numbers, so a block of rows can be made without those before it.
"""

import zlib

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_ROOT_THREE = 3.0**0.5


def generator(seed: int, stream: str, index: int = 0) -> np.random.Generator:
    """A generator of its own for this stream of draws and this index in it."""
    return np.random.default_rng((seed, zlib.crc32(stream.encode()), index))


def zipf_ids(rng: np.random.Generator, cardinality: int | IntArray, size: int) -> IntArray:
    """Ids below n, the cardinality; 0 is the most frequent: k has probability log((k+2)/(k+1)) / log(n+1).

    That is Zipf's law with exponent 1, in a form that is drawn without a table. Each row may have its own n.
    """
    log_end = np.log(np.asarray(cardinality, dtype=np.float64) + 1.0)
    ids = np.exp(rng.random(size) * log_end).astype(np.int64) - 1
    return np.minimum(ids, np.asarray(cardinality, dtype=np.int64) - 1)


def hashed_effects(ids: IntArray, key: int) -> FloatArray:
    """One number per id with mean 0 and variance 1, by hashing: any number of ids, nothing stored."""
    with np.errstate(over="ignore"):
        mixed = ids.astype(np.uint64) + np.uint64(key % 2**64)
        mixed *= np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    uniform = (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return (uniform * 2.0 - 1.0) * _ROOT_THREE


def sigmoid(logits: FloatArray) -> FloatArray:
    """Logits -> probabilities."""
    return 1.0 / (1.0 + np.exp(-logits))


def product(left_NM: FloatArray, right_MK: FloatArray) -> FloatArray:
    """A matrix product that adds in the same order whatever the number of threads: draws hang on the last bit."""
    product_NK: FloatArray = np.einsum("nm,mk->nk", left_NM, right_MK, optimize=False)
    return product_NK


def or_zero(values: FloatArray) -> FloatArray:
    """The effect of a value that is missing (NaN) is nothing."""
    return np.where(np.isnan(values), 0.0, values)
