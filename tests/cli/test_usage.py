"""Wrong words on the command line: one line that says where the right ones are, and exit code 2."""

import pytest

from tests.cli.desk import Desk


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("trian run.yaml", "no such command 'trian'. Did you mean 'train'? (see penstock --help)"),
        ("train", "missing argument 'RUN' (see penstock train --help)"),
        ("train run.yaml more", "got unexpected extra argument(s) (more) (see penstock train --help)"),
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
            "invalid value for '--limit': Input should be greater than or equal to 1 (see penstock predict --help)",
        ),
    ],
)
def test_one_line(desk: Desk, words: str, line: str):
    done = desk.penstock(*words.split())

    assert done.stderr == f"error: {line}\n"
    assert done.stdout == ""
    assert done.exit_code == 2
