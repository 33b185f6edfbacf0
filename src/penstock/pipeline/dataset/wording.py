"""What stages say about keys of a run file, in the words of a Dataset."""

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.config.errors import PenstockError

_WORDS = {
    "data_config.max_batch_rows": ".batch(max_rows=)",
    "data_config.batch_cost_size": ".batch(limit=)",
    "data_config.batch_size": ".batch(rows)",
    "data_config.sample_cost": "batch",
    "data_config.shuffle_buffer": ".shuffle(buffer)",
    "data_config.null_cost": ".batch(null_cost=)",
    "data_config.oversize": ".batch(oversize=)",
    "data_config.input_fields": "types=",
    "data_config.delimiter": "delimiter=",
    "data_config.with_header": "header=",
    "unless with_header is true": "unless header=True",
    "are delimiter and with_header right?": "are delimiter= and header= right?",
    "; set train_input_path or eval_input_path": "",
    "no column is wanted; name features or label_fields": "no column is wanted; name some",
    "raise memory.limit": "raise the limit of .memory(limit)",
}


@contextmanager
def own_words() -> Iterator[None]:
    """Errors that pass through name methods and arguments where they named keys."""
    try:
        yield
    except PenstockError as error:
        text = str(error)
        for key, argument in _WORDS.items():
            text = text.replace(key, argument)
        if text == str(error):
            raise
        raise type(error)(text) from error.__cause__
