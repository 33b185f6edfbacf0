"""The table of the columns of the data on the page of a run."""

import re
from pathlib import Path

from penstock.observe.report.page import page_of
from penstock.observe.report.run_record import read_run
from tests.observe.report.run_folders import write_profile, write_run


def lines(page: str) -> list[list[str]]:
    """The cells of the data profile, line by line."""
    table = page.partition('<div class="table columns">')[2].partition("</table>")[0]
    return [re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", line) for line in table.split("</tr>")[:-1]]


def test_every_column_with_its_use_and_its_values(tmp_path: Path) -> None:
    page = page_of([read_run(write_profile(write_run(tmp_path / "one")))])

    head, click, user, tags = lines(page)
    assert head[:6] == ["column", "type", "used for", "missing", "distinct", "minimum"]
    assert head[6:] == ["maximum", "items", "most frequent", "mean"]
    assert click == ["click", "int64", "label", "0", "≥2", "0", "1", "", "0 (75%)", "0.25"]
    assert user[2:] == ["id_feature user, grouping of metrics", "0", "≥3,000", "0", "9999", "", "", ""]
    assert tags[1:5] == ["list&lt;string&gt;", "id_feature tags", "6.2%", "≥120"]
    assert tags[5:] == ["&lt;b&gt;", "t·z", "1 to 5, mean 2.8", "", ""]
    assert "<summary>Data profile: 3 columns</summary>" in page
    assert (
        "From 4,096 of 15,000 rows, from all over the files; ≥: about so many in these rows alone. The first 3 of "
        "4 columns that the run reads. Columns that the run does not read are not looked at." in page
    )


def test_a_run_without_a_profile_says_why_and_an_older_one_nothing(tmp_path: Path) -> None:
    one = write_profile(write_run(tmp_path / "one"), {"problem": "there are no rows", "seconds": 0.0})

    assert "There is no data profile: there are no rows." in page_of([read_run(one)])
    assert "data profile" not in page_of([read_run(write_run(tmp_path / "older"))]).lower()


def test_a_file_of_another_make_does_not_cost_the_page(tmp_path: Path) -> None:
    one, two = write_run(tmp_path / "one"), write_run(tmp_path / "two")
    (one / "data_profile.json").write_text("[1, 2")
    write_profile(two, {"columns": [{"column": "a"}]})

    assert "data profile" not in page_of([read_run(one)]).lower()
    assert lines(page_of([read_run(two)]))[1][0] == "a"
