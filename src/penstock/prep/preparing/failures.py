"""A raw file that cannot be used: which one, and why, in one line; how it came to be only for whoever asks."""

import signal
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType

from penstock.config.errors import ConfigError, DataError, PenstockError
from penstock.prep.preparing.one_line import in_one_line
from penstock.readers.files import DataFile


class FileFailed(DataError):
    """A raw file cannot be used. The text says why; `stack` is where it happened, in whatever process."""

    def __init__(self, file: str, reason: str, stack: str = "") -> None:
        super().__init__(reason)
        self.file, self.reason, self.stack = file, reason, stack

    def __reduce__(self) -> tuple[type["FileFailed"], tuple[str, str, str]]:
        return type(self), (self.file, self.reason, self.stack)


class Counter:
    """The sample that is being made, for messages."""

    def __init__(self) -> None:
        self.number = 0


@contextmanager
def failing(file: DataFile, place: str | None, counter: Counter | None = None) -> Iterator[None]:
    """Whatever goes wrong inside the block is the file's failure; a wrong run file is not.

    No generator may give anything inside the block: that somebody closes it is no failure.
    """
    try:
        yield
    except (ConfigError, FileFailed):
        raise
    except PenstockError as error:
        text = str(error)
        reason = text if text.startswith(file.path) else f"{file.path}: {text}"
        raise FileFailed(file.path, reason, traceback.format_exc()) from error
    except BaseException as error:  # the user's function may fail in any way
        if isinstance(error, KeyboardInterrupt) and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            raise  # here it is Ctrl-C; workers do not hear that
        sample = "" if counter is None else f"sample {counter.number}: "
        who = "reading" if place is None else f"'{place}'"
        reason = f"{file.path}: {sample}{who} failed: {in_one_line(error)}"
        raise FileFailed(file.path, reason, traceback.format_exc()) from error


class Blaming:
    """A sample that does not fit is its file's failure. One serves for many blocks: it is entered for each sample.

    Numbers are checked together, so that it may be one of an earlier file than the last: the message begins with it.
    """

    def __init__(self, files: Sequence[DataFile]) -> None:
        self._files = files

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not isinstance(error, DataError):
            return
        text, files = str(error), self._files
        culprit = next((file for file in reversed(files) if text.startswith(f"{file.path}: ")), files[-1])
        raise FileFailed(culprit.path, text, traceback.format_exc()) from error
