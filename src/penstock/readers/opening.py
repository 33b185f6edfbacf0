"""From the reading options and the files to the stream that reads them."""

from collections.abc import Collection, Sequence

from penstock.readers.files import DataFile
from penstock.readers.sections import ReadingSection
from penstock.readers.stream import Reader
from penstock.readers.survey import Survey
from penstock.readers.survey import survey as take_survey
from penstock.runtime.budget import Share


def open_reader(
    reading: ReadingSection,
    files: Sequence[DataFile],
    columns: Sequence[str] | None,
    share: Share,
    *,
    block_shuffle_seed: int | None = None,
    text_columns: Collection[str] = (),
    survey: Survey | None = None,
) -> Reader:
    """A stream over the rows of the files, in their order or with blocks permuted per epoch by a seed.

    `columns` are those that are needed (None: all); the stream gives them in that order. The reader holds no
    more than its share. Missing columns, changed types and torn files are found here, before the first batch.
    With a `survey` of the same files and columns nothing is looked at again, and `text_columns` are those that
    the survey was taken with.
    """
    if survey is None:
        survey = take_survey(reading, files, columns, text_columns=text_columns)
    elif tuple(files) != survey.files or (columns is not None and [*columns] != survey.schema.names[:-1]):
        raise ValueError("the survey is of other files or other columns")
    return survey.open(share, block_shuffle_seed)
