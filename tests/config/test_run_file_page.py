"""What docs/run-file.md shows is true."""

import json
import re
import shlex
from pathlib import Path

import pytest

from penstock.config.edits import edit_data
from penstock.config.load import parse_section
from penstock.config.syntax import read
from penstock.run.run_config import RunConfig

PAGE = (Path(__file__).parents[2] / "docs" / "run-file.md").read_text()


def block(start: str) -> str:
    """The code block that begins with these words."""
    match = re.search(rf"```\w*\n({re.escape(start)}.*?)```", PAGE, re.DOTALL)
    assert match is not None
    return match[1]


EXAMPLES = {
    "yaml": block("model_dir: runs/first"),
    "text": block('model_dir: "runs'),
}


@pytest.mark.parametrize("syntax", EXAMPLES)
def test_the_examples_are_one_run(syntax: str):
    data = read(EXAMPLES[syntax], syntax, RunConfig).data

    assert data == read(EXAMPLES["yaml"], "yaml", RunConfig).data
    data["model_config"]["feature_groups"] = [
        {"group_name": "deep", "feature_names": ["user_id"], "group_type": "DEEP"},
        {"group_name": "wide", "feature_names": ["user_id"], "group_type": "WIDE"},
    ]
    parse_section(RunConfig, json.dumps(data), "json")


def test_the_examples_of_edits_apply():
    words = shlex.split(block("--set train_config"))
    edits: list[str | tuple[str, object]] = []
    for option, value in zip(words[::2], words[1::2], strict=True):
        edits += [value] if option == "--set" else list(json.loads(value).items())
    data = read(EXAMPLES["yaml"], "yaml", RunConfig).data

    assert edit_data(RunConfig, data, edits).problems == []
    assert data["data_config"]["label_fields"] == ["q", "buy"]
    assert data["feature_configs"][1]["raw_feature"]["embedding_dim"] == 5
    assert "embedding_dim" in data["feature_configs"][0]["id_feature"]
    assert data["train_config"]["sparse_optimizer"] == {"adagrad_optimizer": {"lr": 0.02}}
