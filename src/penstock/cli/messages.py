"""Messages of the packages, as lines on stderr."""

import logging
import warnings


class Line(logging.Formatter):
    """The message alone; warnings say that they are one."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        text = record.getMessage()
        return f"{record.levelname.lower()}: {text}" if record.levelno >= logging.WARNING else text


def show_messages() -> None:
    """Show what penstock's packages log, and keep quiet what others say about their own future."""
    handler = logging.StreamHandler()
    handler.setFormatter(Line())
    logger = logging.getLogger("penstock")
    logger.handlers = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False
    # torchrec calls a function of torch that warns about its own name, at the start of every run.
    logging.getLogger("torch.fx._symbolic_trace").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    warnings.filterwarnings("ignore", category=FutureWarning)
