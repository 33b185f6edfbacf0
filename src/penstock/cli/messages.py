"""Messages of the packages, as lines on stderr."""

import logging
import warnings


class Line(logging.Formatter):
    """The message alone; warnings say that they are one."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        text = record.getMessage()
        return f"{record.levelname.lower()}: {text}" if record.levelno >= logging.WARNING else text


class Once(logging.Filter):
    """What was said already is not said again: training and evaluation find the same things."""

    def __init__(self) -> None:
        super().__init__()
        self._said: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether this is new."""
        text = record.getMessage()
        is_new = text not in self._said
        self._said.add(text)
        return is_new


def show_messages() -> None:
    """Show what penstock's packages log, and keep quiet what others say about their own future."""
    handler = logging.StreamHandler()
    handler.setFormatter(Line())
    handler.addFilter(Once())
    logger = logging.getLogger("penstock")
    logger.handlers = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    warnings.filterwarnings("ignore", category=FutureWarning)
