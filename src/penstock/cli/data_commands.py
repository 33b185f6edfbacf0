"""Commands on data: prep, merge, rewrite, sample-data, vocab, inspect."""

import json
import logging
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli import command
from penstock.cli.command import EXIT_WRONG, Debug, fail, one_line_errors
from penstock.config.errors import ConfigError
from penstock.config.sizes import parse_size

Parallel = Annotated[
    str | None, typer.Option("--parallel", metavar="true|false", help="Use several processes, or this one.")
]
SkipMerge = Annotated[bool, typer.Option("--skip-merge", help="Leave the batch files as they are.")]
RestartPrep = Annotated[
    bool, typer.Option("--restart", help="Remove the batch files of an earlier preparation and start over.")
]
KeepDone = Annotated[
    bool,
    typer.Option(
        "--keep-done",
        help="Go on after the module of extract was changed; what is done stays as its text before made it.",
    ),
]
IntermediateDir = Annotated[
    str | None, typer.Option("--intermediate-dir", metavar="DIR", help="Where batch files are.")
]
Verify = Annotated[
    bool, typer.Option("--verify", help="Compare the store with batch files and RUN; nothing is written.")
]
RestartMerge = Annotated[
    bool, typer.Option("--restart", help="Write the store again, also where it is whole already.")
]
AllowPickle = Annotated[
    bool, typer.Option("--allow-pickle", help="Read batch files of old that hold pickled samples.")
]
Input = Annotated[
    str, typer.Argument(metavar="INPUT", help="Data of any format: a file, folder, glob or list.")
]
Output = Annotated[Path, typer.Argument(metavar="OUTPUT_DIR", help="A new or empty folder.")]
Delimiter = Annotated[
    str | None,
    typer.Option("--delimiter", help="Between CSV columns ('\\t' is a tab); found unless given."),
]
Header = Annotated[
    bool, typer.Option("--header/--no-header", help="Whether the first line of CSV files names the columns.")
]
Encoding = Annotated[
    str | None, typer.Option("--encoding", help="Of CSV and JSON files, such as cp1252; utf-8 unless given.")
]
Decimal = Annotated[
    str | None,
    typer.Option("--decimal", help="Point or comma in the numbers of CSV files; a point unless given."),
]
Fields = Annotated[
    str | None,
    typer.Option("--fields", metavar="NAME:TYPE;...", help="Types of CSV columns, as 'a:BIGINT;b:STRING'."),
]
DatasetType = Annotated[
    str | None,
    typer.Option("--dataset-type", help="The input's format, such as CsvDataset, where no suffix tells."),
]
FileMemory = Annotated[
    str | None,
    typer.Option("--memory", metavar="SIZE", help="Memory limit of the whole process; default 512MiB."),
]


def prep(
    run_file: command.RunFile,
    parallel: Parallel = None,
    skip_merge: SkipMerge = False,
    restart: RestartPrep = False,
    keep_done: KeepDone = False,
    intermediate_dir: IntermediateDir = None,
    memory: command.Memory = None,
    sets: command.Sets = None,
    edit_config_json: command.EditJson = None,
    strict: command.Strict = False,
    plain: command.Plain = False,
) -> None:
    """Make arrays of raw files, as the section preprocessing of RUN says; go on where an earlier call stopped."""
    with one_line_errors(run_file):
        keys = {
            "preprocessing.parallel": parallel,
            "preprocessing.intermediate_dir": intermediate_dir,
            "memory.limit": memory,
        }
        run = command.load(run_file, keys, sets, edit_config_json, strict)
        from penstock.run.preparation import prepare

        if Debug.shown:
            logging.getLogger("penstock.prep").setLevel(logging.DEBUG)
        result = prepare(run, merge=not skip_merge, restart=restart, keep_done=keep_done, plain=plain)
        print("\n".join(result.lines()))


def merge(
    run_file: command.RunFile,
    intermediate_dir: IntermediateDir = None,
    verify: Verify = False,
    restart: RestartMerge = False,
    allow_pickle: AllowPickle = False,
    memory: command.Memory = None,
    sets: command.Sets = None,
    edit_config_json: command.EditJson = None,
    strict: command.Strict = False,
    plain: command.Plain = False,
) -> None:
    """Make one store of the batch files in intermediate_dir, as the section preprocessing of RUN says."""
    with one_line_errors(run_file):
        keys = {"preprocessing.intermediate_dir": intermediate_dir, "memory.limit": memory}
        run = command.load(run_file, keys, sets, edit_config_json, strict)
        if verify and restart:
            raise ConfigError("--verify writes nothing; leave out --restart, or merge first and verify then")
        from penstock.run.preparation import merge_run, verify_run

        if verify:
            result = verify_run(run, allow_pickle=allow_pickle, plain=plain)
            print("\n".join(result.lines()))
            if result.error:
                fail(result.error, EXIT_WRONG)
        else:
            merged = merge_run(run, restart=restart, allow_pickle=allow_pickle, plain=plain)
            print("\n".join(merged.lines()))


def rewrite(
    source: Input,
    out: Output,
    shuffle: Annotated[bool, typer.Option("--shuffle", help="Put all rows in random order.")] = False,
    seed: Annotated[int, typer.Option("--seed", help="Of the random order.")] = 0,
    files: Annotated[int | None, typer.Option("--files", min=1, help="How many files.")] = None,
    file_size: Annotated[
        str | None,
        typer.Option("--file-size", metavar="SIZE", help="About the size of a file; default 256MiB."),
    ] = None,
    row_group: Annotated[
        str, typer.Option("--row-group", metavar="SIZE", help="About what a row group takes in memory.")
    ] = "32MiB",
    compression: Annotated[str, typer.Option("--compression", help="zstd, snappy or none.")] = "zstd",
    columns: Annotated[
        str | None, typer.Option("--columns", metavar="A,B", help="Only these columns, in this order.")
    ] = None,
    memory: FileMemory = None,
    file_format: Annotated[str, typer.Option("--format", help="parquet.")] = "parquet",
    delimiter: Delimiter = None,
    header: Header = True,
    encoding: Encoding = None,
    decimal: Decimal = None,
    fields: Fields = None,
    dataset_type: DatasetType = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an older rewrite.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read the new files again and compare all rows.")
    ] = False,
    plain: command.Plain = False,
) -> None:
    """Write INPUT as well-sized Parquet files, shuffled if asked for, in bounded memory."""
    with one_line_errors(), _options_as_words():
        from penstock.prep.rewrite import RewriteOptions, check_output
        from penstock.prep.rewrite import rewrite as rewrite_rows
        from penstock.readers.csv import reading_of
        from penstock.readers.files import list_files
        from penstock.readers.scan import ReadRequest, scan_files
        from penstock.runtime.progress import ProgressLogger
        from penstock.runtime.world import Stopped, stop_on_signal

        if file_format != "parquet":
            raise ConfigError(f"--format is '{file_format}'; rewriting writes parquet")
        if files is not None and file_size is not None:
            raise ConfigError("--files and --file-size say the same in two ways; give one of them")
        if seed and not shuffle:
            raise ConfigError("--seed has no effect without --shuffle")
        chosen = RewriteOptions(
            shuffle=shuffle,
            seed=seed,
            num_files=files,
            file_bytes=size_of("--file-size", file_size or "256MiB"),
            row_group_bytes=size_of("--row-group", row_group),
            compression=compression,
            memory_bytes=None if memory is None else size_of("--memory", memory),
            verify=verify,
        )
        found = list_files(source, cure="")
        reading = reading_of(
            found,
            delimiter=delimiter,
            with_header=header,
            fields=fields,
            dataset_type=dataset_type,
            encoding=encoding,
            decimal=decimal,
        )
        names = [name.strip() for name in columns.split(",")] if columns is not None else None
        check_output(out, [file.path for file in found], overwrite)
        with stop_on_signal() as stop:

            @contextmanager
            def stage(name: str, num_rows: int) -> Iterator[Callable[[int], None]]:
                with ProgressLogger(name, "rows", num_rows, plain=plain) as progress:

                    def count(rows: int) -> None:
                        progress.advance(rows)
                        if stop:
                            raise Stopped("nothing was written", stop)

                    yield count

            scanned = scan_files(reading, found, ReadRequest(names))
            summary = rewrite_rows(scanned, out, chosen, overwrite=overwrite, stage=stage)
        print(f"{out}: {summary.describe()}")


def sample_data(
    out: Annotated[Path, typer.Option("--out", help="An empty or new folder.")],
    rows: Annotated[int, typer.Option("--rows", min=1, help="Rows of all splits together.")] = 1_000_000,
    kind: Annotated[str, typer.Option("--kind", help="clicks, criteo or game.")] = "clicks",
    file_format: Annotated[
        str | None, typer.Option("--format", help="parquet (default) or csv; games have a form of their own.")
    ] = None,
    files: Annotated[
        int | None,
        typer.Option(
            "--files", min=1, help="Files per split: 4 unless given; of games one for each 500 rows."
        ),
    ] = None,
    row_group_rows: Annotated[
        int | None, typer.Option("--row_group_rows", min=1, help="Rows per row group: 65,536 unless given.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Another seed gives other data.")] = 0,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace sample data written before.")
    ] = False,
) -> None:
    """Write data with a known answer: labels come from a planted model, so the best possible score is known."""
    with one_line_errors():
        from penstock.prep.sample_data.write import write_sample_data
        from penstock.runtime.progress import ProgressLogger

        with ProgressLogger("sample data", "rows", rows) as progress:
            summary = write_sample_data(
                kind,
                rows,
                out,
                format=file_format,
                num_files=files,
                row_group_rows=row_group_rows,
                seed=seed,
                overwrite=overwrite,
                on_rows=progress.advance,
            )
        print(summary.describe())


def vocab(
    run_file: command.RunFile,
    min_frequency: Annotated[
        int, typer.Option("--min-frequency", min=1, help="Values that occur less often are left out.")
    ] = 2,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FOLDER", help="Where files go; unless given, RUN_vocab beside RUN."),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Also write RUN.vocab.yaml: RUN with everything that was found.")
    ] = False,
    train_input_path: command.TrainInput = None,
    memory: command.Memory = None,
    sets: command.Sets = None,
    edit_config_json: command.EditJson = None,
    strict: command.Strict = False,
    plain: command.Plain = False,
) -> None:
    """Count the values of RUN's features: vocabulary files, means, extremes and quantiles, in bounded memory."""
    with one_line_errors(run_file):
        keys = {"train_input_path": train_input_path, "memory.limit": memory}
        run = command.load(run_file, keys, sets, edit_config_json, strict)
        from penstock.run.vocabulary import build_vocabularies, vocabulary_lines, write_run
        from penstock.runtime.progress import ProgressLogger

        folder = out or run_file.with_name(f"{run_file.stem}_vocab")
        with ProgressLogger("vocab", "rows", plain=plain) as progress:

            def start(num_rows: int) -> None:
                progress.total = num_rows

            result = build_vocabularies(
                run, folder, min_frequency=min_frequency, on_start=start, on_rows=progress.advance
            )
        print("\n".join(vocabulary_lines(result)))
        if write:
            print(write_run(run, result, run_file))


def inspect(
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH", help="Data, batch files, a store, a checkpoint, a run or a folder of runs."
        ),
    ],
    full: Annotated[bool, typer.Option("--full", help="Look at all rows of data, not at some.")] = False,
    memory: FileMemory = None,
    delimiter: Delimiter = None,
    header: Header = True,
    encoding: Encoding = None,
    decimal: Decimal = None,
    fields: Fields = None,
    dataset_type: DatasetType = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    plain: command.Plain = False,
) -> None:
    """Show what is in PATH: schema, rows, sizes, warnings."""
    with one_line_errors(), _options_as_words():
        from penstock.observe.inspect import LookOptions
        from penstock.observe.inspect import inspect as inspect_path

        reading = {
            "delimiter": delimiter,
            "with_header": header,
            "fields": fields,
            "dataset_type": dataset_type,
            "encoding": encoding,
            "decimal": decimal,
        }
        memory_bytes = None if memory is None else size_of("--memory", memory)
        look = LookOptions(full=full, memory_bytes=memory_bytes, plain=plain, reading=reading)
        found = inspect_path(path, look)
        if as_json:
            print(json.dumps(found.as_dict(), indent=2))
        else:
            width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
            print(found.as_text(width))


@contextmanager
def _options_as_words() -> Iterator[None]:
    """Errors name options instead of settings of a run file, which these commands have none of."""
    from penstock.data.arguments import own_words

    options = {
        "data_config.delimiter": "--delimiter",
        "data_config.with_header": "--header",
        "data_config.encoding": "--encoding",
        "data_config.decimal to ','": "--decimal to ','",
        "data_config.input_fields": "--fields",
        "data_config.dataset_type": "--dataset-type",
    }
    with own_words(options):
        yield


def size_of(option: str, text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise ConfigError(f"{option} {error}") from error
