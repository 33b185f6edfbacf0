"""Wrong words on the command line: one line that says where the right ones are, and exit code 2."""

import pytest

from tests.cli.desk import Desk


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("train", "missing argument 'RUN' (see penstock train --help)"),
        (
            "train run.yaml --contine_train",
            "no such option: --contine-train (Possible options: --continue-train) (see penstock train --help)",
        ),
        (
            "predict run.yaml --predict_input_path clicks.parquet",
            "missing option '--predict_output_path' (see penstock predict --help)",
        ),
        (
            "predict run.yaml --predict_input_path a --predict_output_path b --limit 0",
            "--limit: is 0; give 1 or more (see penstock predict --help)",
        ),
        (
            "sample-data --rows many --out x",
            "--rows: is 'many'; give a whole number (see penstock sample-data --help)",
        ),
    ],
)
def test_one_line(desk: Desk, words: str, line: str):
    done = desk.penstock(*words.split())

    assert done.stderr == f"error: {line}\n"
    assert done.stdout == ""
    assert done.exit_code == 2
