"""The JSON-lines log: appended, torn lines passed over, cut back on resume."""

from penstock.runtime.journal import Journal


def test_records_come_back_in_order(tmp_path):
    journal = Journal(tmp_path / "log.jsonl")
    journal.write({"step": 1, "loss": 0.5})
    journal.write({"step": 2, "loss": float("nan")})

    assert journal.read() == [{"step": 1, "loss": 0.5}, {"step": 2, "loss": None}]


def test_what_came_after_the_checkpoint_is_cut(tmp_path):
    journal = Journal(tmp_path / "log.jsonl")
    for step in (1, 2, 3):
        journal.write({"step": step})

    journal.cut_back(2)

    assert [record["step"] for record in journal.read()] == [1, 2]


def test_a_line_torn_by_a_kill_is_passed_over(tmp_path):
    journal = Journal(tmp_path / "log.jsonl")
    journal.write({"step": 1})
    with journal.path.open("a") as file:
        file.write('{"step": 2, "lo')

    assert journal.read() == [{"step": 1}]
