"""`penstock inspect`."""

import json
import shutil
import sys
from typing import Annotated

import typer

from penstock.cli import options
from penstock.cli.errors import one_line_errors
from penstock.cli.rewrite import DatasetType, Delimiter, Fields, Header, Memory


def inspect(
    path: Annotated[
        str,
        typer.Argument(metavar="PATH", help="Data, batch files, a store, a checkpoint or a run."),
    ],
    full: Annotated[bool, typer.Option("--full", help="Look at all rows of data, not at some.")] = False,
    memory: Memory = None,
    delimiter: Delimiter = None,
    header: Header = True,
    fields: Fields = None,
    dataset_type: DatasetType = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    plain: options.Plain = False,
) -> None:
    """Show what is in PATH: schema, rows, sizes, warnings."""
    with one_line_errors():
        from penstock.observe.inspect import inspect as inspect_path
        from penstock.observe.inspect_data import DataLook
        from penstock.readers.reading_options import size_of

        reading = {
            "delimiter": delimiter,
            "with_header": header,
            "fields": fields,
            "dataset_type": dataset_type,
        }
        memory_bytes = None if memory is None else size_of("--memory", memory)
        look = DataLook(full=full, memory_bytes=memory_bytes, plain=plain, reading=reading)
        found = inspect_path(path, look)
        if as_json:
            print(json.dumps(found.as_dict(), indent=2))
        else:
            width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
            print(found.as_text(width))
