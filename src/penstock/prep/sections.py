"""preprocessing: from raw files to array stores."""

from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, NonNegativeInt, PositiveInt, model_validator

from penstock.config.errors import hint
from penstock.config.section import Paths, Probability, Section


class MergeStrategy(StrEnum):
    """How batch files become one store."""

    sequential = "sequential"
    accumulative = "accumulative"


class SplitBy(StrEnum):
    """What is kept together in one split."""

    sample = "sample"
    group = "group"
    file = "file"


class BatchLayout(StrEnum):
    """Form of the batch files."""

    native = "native"
    npz = "npz"


class Compression(StrEnum):
    """How bytes are compressed."""

    none = "none"
    zlib = "zlib"
    zstd = "zstd"
    lz4 = "lz4"


class FeatureDtype(StrEnum):
    """Type of the features' numbers."""

    float16 = "float16"
    float32 = "float32"
    float64 = "float64"


class StoreTarget(StrEnum):
    """Form of the merged store."""

    npy = "npy"
    parquet = "parquet"
    ipc = "ipc"
    hdf5 = "hdf5"


class HeadFiles(StrEnum):
    """Form of labels and masks in a store of npy files."""

    npz = "npz"
    npy = "npy"


class Executor(StrEnum):
    """Where the work runs."""

    local = "local"
    ray = "ray"


class OnError(StrEnum):
    """What happens to a raw file that cannot be used."""

    stop = "stop"
    skip = "skip"


class Splits(Section):
    """Shares of the samples."""

    train: Probability = 0.8
    val: Probability = 0.1
    test: Probability = 0.1

    by: SplitBy = SplitBy.sample
    """What is kept together: nothing, the samples of a group, or those of a file."""

    group_key: str | None = None
    """With by: group, what tells the group of a sample."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        total = self.train + self.val + self.test
        if abs(total - 1) > 1e-6:
            raise ValueError(f"train, val and test add up to {total:g}; they must add up to 1")
        if self.by is SplitBy.group and not self.group_key:
            raise ValueError("by: group needs group_key")
        return self


_NUMBER_TYPES = (
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"),
    *("float16", "float32", "float64"),
)


def _number_type(name: str) -> str:
    if name not in _NUMBER_TYPES:
        raise ValueError(f"there is no type '{name}'; {hint(name, _NUMBER_TYPES)}")
    return name


def _mask_type(name: str) -> str:
    if name not in (*_NUMBER_TYPES, "bool"):
        raise ValueError(f"there is no type '{name}'; {hint(name, (*_NUMBER_TYPES, 'bool'))}")
    return name


NumberType = Annotated[str, AfterValidator(_number_type)]
"""A type of numbers by its name, such as int16."""

MaskType = Annotated[str, AfterValidator(_mask_type)]
GroupName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]+$")]
"""What can be a part of the names of arrays and files."""


def _group_features(given: Any) -> Any:
    """Refuse in one sentence what is neither a count nor names, instead of in one for each possibility."""
    is_count = isinstance(given, int) and not isinstance(given, bool) and given > 0
    is_names = isinstance(given, list) and bool(given) and all(isinstance(name, str) for name in given)
    if not is_count and not is_names:
        raise ValueError(
            f"is {given!r}; give how many features, from the first on, or a list of names of columns"
        )
    return given


GroupFeatures = Annotated[PositiveInt | list[str], BeforeValidator(_group_features)]
"""How many features a group has, or its columns."""


class SampleSchema(Section):
    """What samples consist of; what is absent is found from the first samples."""

    num_features: PositiveInt | None = None
    """Features of a sample, those in groups not counted."""

    feature_groups: dict[GroupName, GroupFeatures] = {}
    """Features in arrays of their own: how many of them, from the first on; or their columns, as in feature_columns."""

    labels: dict[str, NumberType] = {}
    """Heads, and the types of their labels; others are as the first sample has them."""

    masks: dict[str, PositiveInt] = {}
    """Heads, and how many choices their masks have; others are as the first sample has them."""

    mask_dtype: MaskType = "int8"
    """Type of the masks' numbers."""

    features_name: str = "strategic_features"
    """The array with the features."""

    label_prefix: str = "labels_"
    """In front of a head: the array with its labels."""

    mask_prefix: str = "masks_"
    """In front of a head: the array with its masks."""

    feature_columns: list[str] = []
    """Columns that are features, in this order; f_* stands for all that fit. Absent: all others that hold numbers."""

    fill_value: float | None = None
    """Stands for a feature that is missing in a column; absent: that is an error. Labels and masks are never filled."""

    label_columns: dict[str, str] = {}
    """The columns of heads; absent: the column with the name of the head, or of its array."""

    mask_columns: dict[str, str] = {}
    """The columns of heads with their masks, which are lists; absent: the column with the name of the array."""

    def group_array(self, group: str) -> str:
        """The array with the features of a group."""
        return f"{self.features_name}_{group}"


class Preprocessing(Section):
    """From raw files to samples, batch files, and one store."""

    input_path: Paths = ""
    """Raw files: a path, glob, directory or URL; several with commas between them, or as a list."""

    extract: str | None = None
    """Function from a raw file to samples, as package.module:function; absent: columns as they are."""

    intermediate_dir: str = "data/intermediate"
    """Where batch files go."""

    output_dir: str = "data/processed"
    """Where the store goes."""

    batch_size: PositiveInt = 500
    """Samples in a batch file."""

    num_workers: PositiveInt | None = None
    """Processes; absent: the number of cores less 2, at least 1, fewer where the memory limit says so."""

    parallel: bool = True
    """Use several processes."""

    verbose: bool = True
    """A line in the log for each file."""

    monitor_memory: bool = True
    """Measure the peak of each stage; false: memory.limit only decides how many processes work."""

    sample_schema: SampleSchema = Field(default_factory=SampleSchema, alias="schema")
    """Names, types and widths of features, labels and masks; absent: found from the first samples."""

    use_float32: bool = True
    """Features as float32; false: float64."""

    dtype: FeatureDtype = FeatureDtype.float32
    """Type of the features' numbers."""

    feature_dtypes: dict[str, FeatureDtype] = {}
    """Another type for groups of features, which schema.feature_groups names; a group may be a single feature."""

    layout: BatchLayout = BatchLayout.native
    """Form of the batch files."""

    compression: Compression = Compression.none
    """Of the batch files, and of a store of target parquet or ipc; npy and hdf5 files are mapped, never compressed."""

    compression_level: NonNegativeInt | None = None
    """How hard to compress: zlib 0 to 9, zstd 1 to 22, lz4 1 to 12; absent: the method's own default."""

    merge_strategy: MergeStrategy = MergeStrategy.sequential
    """sequential: in bounded memory. accumulative: all at once, for small data."""

    merge_workers: PositiveInt = 1
    """Processes that write the store."""

    target: StoreTarget = StoreTarget.npy
    """Form of the store."""

    heads: HeadFiles = HeadFiles.npz
    """Labels and masks as one npz file each, or as a folder of npy files."""

    splits: Splits | None = None
    """Shares of the samples; absent: everything is train."""

    shuffle: bool = False
    """Write the store in random order."""

    seed: int = 0
    """Splits and order follow from this number."""

    executor: Executor = Executor.local
    """Where the work runs."""

    on_error: OnError = OnError.stop
    """A raw file that cannot be used: stop, or go on without it."""

    @model_validator(mode="after")
    def _types_of_groups(self) -> Self:
        groups = self.sample_schema.feature_groups
        unknown = next((name for name in self.feature_dtypes if name not in groups), None)
        if unknown is not None:
            known = f"; {hint(unknown, groups)}" if groups else ""
            raise ValueError(
                f"feature_dtypes: there is no group '{unknown}' in schema.feature_groups{known}; a single type for all "
                "features is dtype"
            )
        return self

    @model_validator(mode="after")
    def _compression_fits(self) -> Self:
        method = self.compression
        if method is Compression.none and self.compression_level is not None:
            raise ValueError("compression_level without compression changes nothing; leave it out")
        if self.layout is BatchLayout.npz and method not in (Compression.none, Compression.zlib):
            raise ValueError(
                f"layout npz cannot have compression {method}: NumPy reads none and zlib; choose layout native"
            )
        if self.target is StoreTarget.ipc and method is Compression.zlib:
            raise ValueError("target ipc cannot have compression zlib; choose zstd, lz4 or none")
        return self
