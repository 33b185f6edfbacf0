"""`penstock rewrite`."""

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli import options
from penstock.cli.errors import one_line_errors

Input = Annotated[
    str, typer.Argument(metavar="INPUT", help="Data of any format: a file, folder, glob or list.")
]
Output = Annotated[Path, typer.Argument(metavar="OUTPUT_DIR", help="A new or empty folder.")]
Delimiter = Annotated[
    str | None, typer.Option("--delimiter", help="Between the columns of CSV files; '\\t' is a tab.")
]
Header = Annotated[
    bool, typer.Option("--header/--no-header", help="Whether the first line of CSV files names the columns.")
]
Fields = Annotated[
    str | None,
    typer.Option("--fields", metavar="NAME:TYPE;...", help="Types of CSV columns, as 'a:BIGINT;b:STRING'."),
]
DatasetType = Annotated[
    str | None,
    typer.Option("--dataset-type", help="The input's format, such as CsvDataset, where no suffix tells."),
]
Memory = Annotated[
    str | None,
    typer.Option("--memory", metavar="SIZE", help="Memory limit of the whole process; default 512MiB."),
]


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
    memory: Memory = None,
    file_format: Annotated[str, typer.Option("--format", help="parquet.")] = "parquet",
    delimiter: Delimiter = None,
    header: Header = True,
    fields: Fields = None,
    dataset_type: DatasetType = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an older rewrite.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read the new files again and compare all rows.")
    ] = False,
    plain: options.Plain = False,
) -> None:
    """Write INPUT as well-sized Parquet files, shuffled if asked for, in bounded memory."""
    with one_line_errors():
        from penstock.config.errors import ConfigError
        from penstock.prep.rewrite.options import RewriteOptions
        from penstock.readers.reading_options import files_of, reading_of, size_of
        from penstock.run.rewrite import rewrite_files

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
        found = files_of(source)
        reading = reading_of(
            found, delimiter=delimiter, with_header=header, fields=fields, dataset_type=dataset_type
        )
        names = [name.strip() for name in columns.split(",")] if columns is not None else None
        summary = rewrite_files(found, out, chosen, reading, columns=names, overwrite=overwrite, plain=plain)
        print(f"{out}: {summary.describe()}")
