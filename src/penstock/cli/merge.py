"""`penstock merge`."""

from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli import options
from penstock.cli.errors import EXIT_WRONG, fail, one_line_errors
from penstock.cli.prep import IntermediateDir
from penstock.config.errors import ConfigError

if TYPE_CHECKING:
    from penstock.run.run_config import RunConfig

Verify = Annotated[
    bool, typer.Option("--verify", help="Compare the store with batch files and RUN; nothing is written.")
]
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
        if verify:
            _verify(run, restart, allow_pickle, plain)
            return
        from penstock.run.merge import merge_run

        print("\n".join(merge_run(run, restart=restart, allow_pickle=allow_pickle, plain=plain).lines()))


def _verify(run: "RunConfig", restart: bool, allow_pickle: bool, plain: bool) -> None:
    from penstock.run.merge import verify_run

    if restart:
        raise ConfigError("--verify writes nothing; leave out --restart, or merge first and verify then")
    result = verify_run(run, allow_pickle=allow_pickle, plain=plain)
    print("\n".join(result.lines()))
    if result.error:
        fail(result.error, EXIT_WRONG)
