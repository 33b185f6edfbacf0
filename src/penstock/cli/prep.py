"""`penstock prep`."""

import logging
from typing import Annotated

import typer

from penstock.cli import options
from penstock.cli.errors import Debug, one_line_errors

Parallel = Annotated[
    str | None, typer.Option("--parallel", metavar="true|false", help="Use several processes, or this one.")
]
SkipMerge = Annotated[bool, typer.Option("--skip-merge", help="Leave the batch files as they are.")]
Restart = Annotated[
    bool, typer.Option("--restart", help="Remove the batch files of an earlier preparation and begin anew.")
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


def prep(
    run_file: options.RunFile,
    parallel: Parallel = None,
    skip_merge: SkipMerge = False,
    restart: Restart = False,
    keep_done: KeepDone = False,
    intermediate_dir: IntermediateDir = None,
    memory: options.Memory = None,
    sets: options.Sets = None,
    edit_config_json: options.EditJson = None,
    strict: options.Strict = False,
    plain: options.Plain = False,
) -> None:
    """Make arrays of raw files, as the section preprocessing of RUN says; go on where an earlier call stopped."""
    with one_line_errors(run_file):
        paths = {
            "preprocessing.parallel": parallel,
            "preprocessing.intermediate_dir": intermediate_dir,
            "memory.limit": memory,
        }
        run = options.load(run_file, paths, sets, edit_config_json, strict)
        from penstock.run.prepare import prepare

        if Debug.shown:
            logging.getLogger("penstock.prep").setLevel(logging.DEBUG)
        result = prepare(run, merge=not skip_merge, restart=restart, keep_done=keep_done, plain=plain)
        print("\n".join(result.lines()))
