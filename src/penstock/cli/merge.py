"""`penstock merge`."""

from typing import Annotated

import typer

from penstock.cli import options
from penstock.cli.errors import EXIT_WRONG, fail, one_line_errors
from penstock.cli.prep import IntermediateDir

Verify = Annotated[bool, typer.Option("--verify", help="Compare the store with the batch files.")]
Restart = Annotated[
    bool, typer.Option("--restart", help="Write the store anew, also where it is whole already.")
]
AllowPickle = Annotated[
    bool, typer.Option("--allow-pickle", help="Read batch files of old that hold pickled samples.")
]


def merge(
    run_file: options.RunFile,
    intermediate_dir: IntermediateDir = None,
    verify: Verify = False,
    restart: Restart = False,
    allow_pickle: AllowPickle = False,
    memory: options.Memory = None,
    sets: options.Sets = None,
    edit_config_json: options.EditJson = None,
    strict: options.Strict = False,
    plain: options.Plain = False,
) -> None:
    """Make one store of the batch files in intermediate_dir, as the section preprocessing of RUN says."""
    with one_line_errors(run_file):
        paths = {"preprocessing.intermediate_dir": intermediate_dir, "memory.limit": memory}
        run = options.load(run_file, paths, sets, edit_config_json, strict)
        from penstock.pipeline.merging import merge_run

        result = merge_run(run, check=verify, restart=restart, allow_pickle=allow_pickle, plain=plain)
        print("\n".join(result.lines()))
        if result.differences:
            first, *others = result.differences
            more = f" (and {len(others)} more differences)" if others else ""
            fail(f"{first}{more}", EXIT_WRONG)
