"""The paths of a run file -> the files they mean.

A path is a file, a directory, a glob, or several of these separated by commas, on a local disk or in a store
(`s3://bucket/folder/*.parquet`). A directory means the data files in it, or those of its partitions
(`dt=2024-01-01/`); a glob gives its matches in sorted order.
Everything that can be wrong with a path is found here, before anything is read.
"""

import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Self
from urllib.parse import parse_qsl, unquote

from penstock.config.errors import DataError, hint, nearest_name
from penstock.config.registry import Registry
from penstock.readers import FORMATS, TABLE_SCHEME

TYPE_OF_SUFFIX = {suffix: name for name, row in FORMATS.items() for suffix in row.suffixes}
"""The dataset type that a file's suffix stands for; in a directory, these are the data files."""
HDF5_SUFFIXES = (".h5", ".hdf5")  # of files that a merge may write, and that no reader reads
ZIP_SUFFIX = ".zip"
COMPRESSIONS = (".gz", ".zst")  # suffixes that may stand after the format's own
LISTERS: "Registry[Callable[[Uri], list[DataFile]]]" = Registry(
    "scheme",
    {
        **dict.fromkeys(("s3", "gs", "gcs", "hdfs", "abfs", "abfss"), "penstock.readers.storage:list_store"),
        "odps": "penstock.readers.odps:list_tables",
    },
)
"""How the files behind a path with a scheme are listed; those of `file://` are local ones."""
MANIFEST_NAME = "manifest.json"
"""What makes a folder a store; written last, when everything else is there."""
SPLITS = ("train", "val", "test")
_HEADS_FOLDER = re.compile(rf".+_({'|'.join(SPLITS)})")
_SPLIT_FILE = re.compile(rf"{_HEADS_FOLDER.pattern}\.np[yz]")
_SHARD = re.compile(r"(\.tfrecords?)-\d+-of-\d+")
"""How TensorFlow names the parts of a set: clicks.tfrecord-00000-of-00004."""
_SHOWN = 10
SEPARATOR = "://"
UTF8 = "utf-8"


def is_uri(path: str) -> bool:
    return SEPARATOR in path


def path_name(path: str) -> str:
    """The last part of a path, without the options of a URI.

    >>> path_name("s3://bucket/day=1/clicks.csv?region=eu-west-1")
    'clicks.csv'
    """
    return os.path.basename(path.partition("?")[0] if SEPARATOR in path else path)


@dataclass(frozen=True, slots=True)
class Uri:
    """The parts of `s3://bucket/key?region=eu-west-1`; `key` has no slash in front.

    Names in a store are taken as they stand: nothing in them is decoded, and `?` begins the options of a connection.
    """

    scheme: str
    authority: str
    key: str
    query: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        scheme, _, rest = text.partition(SEPARATOR)
        path, _, query = rest.partition("?")
        authority, _, key = path.partition("/")
        uri = cls(scheme.lower(), authority, key, query)
        if uri.scheme == "s3" and not authority:
            raise DataError(f"{uri}: names no bucket; write s3://bucket/path")
        if uri.scheme == "s3" and "@" in authority:
            raise DataError(
                f"s3://{authority.rpartition('@')[2]}: has keys in its path, which would stand in logs; set "
                "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead"
            )
        return uri

    @property
    def root(self) -> str:
        """The file system: all of the URI but the key."""
        return str(replace(self, key=""))

    @property
    def options(self) -> dict[str, str]:
        return dict(parse_qsl(self.query, keep_blank_values=True))

    def at(self, key: str) -> Self:
        """Another key of the same file system."""
        return replace(self, key=key)

    def __str__(self) -> str:
        query = f"?{self.query}" if self.query else ""
        return f"{self.scheme}{SEPARATOR}{self.authority}/{self.key}{query}"


@dataclass(frozen=True, slots=True)
class DataFile:
    path: str
    size_bytes: int
    codec: str | None = field(default=None, compare=False)
    """What text is compressed with, once somebody has looked."""
    encoding: str = field(default=UTF8, compare=False)

    @property
    def name(self) -> str:
        return path_name(self.path)

    @property
    def is_sequential(self) -> bool:
        """Whether it can only be read from its start."""
        return self.codec is not None or self.encoding != UTF8


def zip_refusal(path: str) -> DataError:
    return DataError(f"{path}: is a zip archive; unzip it, and name the file that is in it")


def data_suffix(path: str) -> str:
    """What tells the format, in lower case: '.csv' for 'clicks.csv.gz'; of a table its scheme."""
    if path.startswith(TABLE_SCHEME):
        return TABLE_SCHEME
    stem, suffix = os.path.splitext(_SHARD.sub(r"\1", path_name(path).lower()))
    return os.path.splitext(stem)[1] if suffix in COMPRESSIONS else suffix


def choose_data_files(names: Iterable[str]) -> list[str]:
    """The data files among the names of a directory, sorted; where none has a data suffix, those without any."""
    shown = [name for name in names if name[0] not in "._"]
    chosen = [name for name in shown if data_suffix(name) in TYPE_OF_SUFFIX]
    # Beside arrays, other files describe them: a store has a manifest.json.
    arrays = [name for name in chosen if TYPE_OF_SUFFIX[data_suffix(name)] == "NumpyDataset"]
    if chosen == [MANIFEST_NAME]:
        chosen = [name for name in shown if data_suffix(name) in HDF5_SUFFIXES] or chosen
    return sorted(arrays or chosen or [name for name in shown if "." not in name])


def is_partition(folder_name: str) -> bool:
    """Whether a folder is named as Hive names those of a table: `dt=2024-01-01`."""
    key, sign, _ = folder_name.partition("=")
    return bool(key and sign) and key[0] not in "._"


def list_files(path_spec: str, cure: str = "; set train_input_path or eval_input_path") -> list[DataFile]:
    """The files that a path means, each once, in a fixed order; `cure` ends the error where it is empty."""
    parts = [path_spec] if os.path.exists(path_spec) else [part.strip() for part in path_spec.split(",")]
    files: list[DataFile] = []
    for part in filter(None, parts):
        uri = Uri.parse(part) if is_uri(part) else None
        if uri is None or uri.scheme == "file":
            files += _local_files(part if uri is None else f"/{unquote(uri.key)}")
        elif uri.scheme in LISTERS:
            files += LISTERS.get(uri.scheme)(uri)
        else:
            raise DataError(
                f"{part}: {uri.scheme}:// paths cannot be read; {hint(uri.scheme, [*LISTERS, 'file'])}"
            )
    if not files:
        raise DataError(f"no data path is given{cure}")
    for earlier, path in pairwise(sorted(file.path for file in files)):
        if earlier == path:
            raise DataError(f"'{path_spec}' names {path} twice; its rows would be read twice")
    return files


def _local_files(part: str) -> Iterator[DataFile]:
    path = os.path.expanduser(part)
    matches = [path] if os.path.lexists(path) else sorted(glob.glob(path, recursive=True))
    if not matches:
        if not glob.has_magic(path):
            raise _missing(path)
        folder = path
        while glob.has_magic(folder):
            folder = os.path.dirname(folder)
        raise DataError(f"{path}: matches nothing; {_content(folder or '.')}")
    for match in matches:
        for found in _files_in(match) if os.path.isdir(match) else [match]:
            try:
                with open(found, "rb"):
                    yield DataFile(found, os.path.getsize(found))
            except PermissionError as error:
                raise DataError(f"{found}: no permission to read this file") from error
            except OSError as error:
                raise DataError(f"{found}: cannot be opened: {error.strerror}") from error


def _files_in(folder: str) -> list[str]:
    try:
        entries = list(os.scandir(folder))
    except PermissionError as error:
        raise DataError(f"{folder}: no permission to list this directory") from error
    names = [entry.name for entry in entries if entry.is_file()]
    check_one_split(folder, names)
    folders = sorted(entry.name for entry in entries if entry.is_dir())
    chosen = choose_data_files(names)
    inner = head_folders(names, folders) if chosen else filter(is_partition, folders)
    paths = [os.path.join(folder, name) for name in chosen]
    paths += [path for name in inner for path in _files_in(os.path.join(folder, name))]
    if not paths and not (is_partition(os.path.basename(folder)) and not _names(folder)):
        raise DataError(f"{folder}: no data files in this directory; {_content(folder)}")
    return paths


def _missing(path: str) -> DataError:
    missing = Path(path)
    while not missing.parent.exists():
        missing = missing.parent
    what = "no such file or directory" if missing == Path(path) else f"no such directory as {missing}"
    near = nearest_name(missing.name, _names(str(missing.parent)))
    guess = f"did you mean '{missing.parent / near}'?" if near else _content(str(missing.parent))
    return DataError(f"{path}: {what}; {guess}")


def _names(folder: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except OSError:
        return []


def _content(folder: str) -> str:
    if not os.path.isdir(folder):
        return f"there is no directory {folder}"
    return describe_content(folder, _names(folder))


def describe_content(folder: str, names: Sequence[str]) -> str:
    if not names:
        return f"{folder} is empty"
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{folder} holds {', '.join(names[:_SHOWN])}{more}"


# The splits of an array store, told by the names of its files: `penstock merge` writes `X_train.npy`,
# `labels_train.npz` and `masks_train.npz` (or folders `labels_train/` with a `.npy` file for each head) beside a
# manifest. A glob such as `data/processed/*_train*` names a split of it.


def split_file(path: str) -> tuple[str, str] | None:
    """The folder of the store that a file may belong to, and its name there; None where it is not called like that.

    >>> split_file("data/X_train.npy")
    ('data', 'X_train.npy')
    >>> split_file("data/labels_val/action.npy")
    ('data', 'labels_val/action.npy')
    """
    folder, name = os.path.split(path.partition("?")[0] if is_uri(path) else path)
    if _SPLIT_FILE.fullmatch(name):
        return folder or ".", name
    folder, inner = os.path.split(folder)
    return (folder or ".", f"{inner}/{name}") if _HEADS_FOLDER.fullmatch(inner) else None


def head_folders(file_names: Iterable[str], folder_names: Iterable[str]) -> list[str]:
    """The folders of a store that hold more of its arrays, sorted; none where the folder is no store."""
    if MANIFEST_NAME not in file_names:
        return []
    return sorted(name for name in folder_names if _HEADS_FOLDER.fullmatch(name))


def check_one_split(folder: str, file_names: Iterable[str]) -> None:
    """Refuse a store with several splits where one is wanted: a model must not be trained on what it is judged by."""
    names = list(file_names)
    found = {match[1] for match in map(_SPLIT_FILE.fullmatch, names) if match}
    splits = [split for split in SPLITS if split in found]
    if MANIFEST_NAME in names and len(splits) > 1:
        raise DataError(
            f"{folder}: is a store with the splits {', '.join(splits)}; name one of them, as "
            f"{folder.rstrip('/')}/*_{splits[0]}*"
        )
