"""The program `penstock`: its commands, and what they share."""

from importlib.metadata import version as installed_version
from typing import Annotated

import typer

from penstock.cli.data_commands import inspect, merge, prep, rewrite, sample_data
from penstock.cli.errors import Debug, Program, show_messages
from penstock.cli.look_commands import check, demo, doctor, plan, report, schema
from penstock.cli.train_commands import evaluate, predict, train, train_eval

app = typer.Typer(
    name="penstock",
    help="Carry training data from disk to a trained model inside a memory limit.",
    cls=Program,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={
        # --memory_limit and --memory-limit are the same option.
        "token_normalize_func": lambda word: word.replace("_", "-"),
        "help_option_names": ["-h", "--help"],
    },
)


def show_version(is_asked: bool) -> None:
    if is_asked:
        print(f"penstock {installed_version('penstock')}")
        raise typer.Exit


@app.callback()
def program(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    _version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and leave.", callback=show_version, is_eager=True),
    ] = False,
) -> None:
    """Carry training data from disk to a trained model inside a memory limit."""
    Debug.shown = debug
    show_messages()


app.command()(train)
app.command("train-eval", hidden=True)(train_eval)
app.command("eval")(evaluate)
app.command()(predict)
app.command()(check)
app.command()(plan)
app.command()(inspect)
app.command()(report)
app.command()(prep)
app.command()(merge)
app.command()(rewrite)
app.command("sample-data")(sample_data)
app.command()(schema)
app.command()(doctor)
app.command(hidden=True)(demo)


def main() -> None:
    """The console script, called `penstock` also where it runs as `python -m penstock`."""
    app(prog_name="penstock")
