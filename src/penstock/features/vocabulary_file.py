"""Vocabulary files: one value a line in the order of its rows, or `value<TAB>row` in every line."""

from pathlib import Path

from penstock.config.errors import ConfigError


def read_vocabulary(path: str, folder: str | None, first_row: int) -> dict[str, int]:
    """The row of every value; a file of values alone gives rows from `first_row` on. Empty lines are left out."""
    file = Path(folder or "") / path
    try:
        lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line]
    except OSError as error:
        raise ConfigError.at("vocab_file", f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError.at("vocab_file", f"{file} is not UTF-8") from error
    if not lines:
        raise ConfigError.at("vocab_file", f"{file} has no values")
    rows: dict[str, int] = {}
    has_rows = all(_row(line) is not None for line in lines)
    for index, line in enumerate(lines):
        row = _row(line) if has_rows else None
        value = line.rpartition("\t")[0] if row is not None else line
        if value in rows:
            raise ConfigError.at("vocab_file", f"{file} has '{value}' more than once")
        rows[value] = first_row + index if row is None else row
    return rows


def _row(line: str) -> int | None:
    value, tab, row = line.rpartition("\t")
    return int(row) if value and tab and row.isascii() and row.isdigit() else None
