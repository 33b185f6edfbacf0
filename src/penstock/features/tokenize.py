"""tokenize_feature: a text as the ids of its tokens, by a tokenizer that was trained elsewhere.

| tokenizer_type | vocab_file                         | library       |
|----------------|------------------------------------|---------------|
| bpe            | tokenizer.json, of any kind        | tokenizers    |
| sentencepiece  | the .model file                    | sentencepiece |

No special tokens are added. The table has a row for each token of the vocabulary. text_normalizer cleans the text
first: it is cut at max_length, then the norm_options apply, in the order in which they stand below.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from penstock.config.errors import ConfigError
from penstock.features.feature import Recipe
from penstock.features.sections.types import TextNormalizeOption, TextNormalizer, TokenizeFeature
from penstock.features.strings import as_strings, from_list, to_arrow
from penstock.features.values import Int32Array, Int64Array, Strings, Values, one_per_row, sum_by_row

_FULL_WIDTH = {0x3000: 0x20} | {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_USUAL_OPTIONS = [
    TextNormalizeOption.TEXT_LOWER2UPPER,
    TextNormalizeOption.TEXT_SBC2DBC,
    TextNormalizeOption.TEXT_FILTER,
]
"""Where text_normalizer names none."""


def tokenize_recipe(config: TokenizeFeature) -> Recipe:
    tokenizer = _load(config)
    cleaner = None if config.text_normalizer is None else cleaner_of(config.text_normalizer, config.asset_dir)
    tokens = Tokens(tokenizer, cleaner, config.tokens_as_sequence)
    ids = np.empty(0, np.int64)
    if config.default_value:
        ids, _ = tokens.ids_of(from_list([config.default_value]))
    if config.tokens_as_sequence:
        tokens, ids = Tokens(tokenizer, cleaner, True, tuple(ids.tolist())), ids[:0]
    written = " ".join(str(token) for token in ids.tolist()) or None
    return Recipe((config.expression,), tokens, tokenizer.num_rows, written, reads_text=True)


@dataclass(frozen=True, slots=True)
class Cleaner:
    """The steps of a text_normalizer; it goes over a whole column at once."""

    options: frozenset[TextNormalizeOption]
    removed: str
    """What TEXT_FILTER leaves out, as a regular expression."""

    max_length: int | None = None

    def __call__(self, texts: Any) -> Any:
        options, option = self.options, TextNormalizeOption
        if self.max_length is not None:
            texts = pc.utf8_slice_codeunits(texts, 0, self.max_length)
        if option.TEXT_SBC2DBC in options:
            texts = to_arrow(from_list([text.translate(_FULL_WIDTH) for text in texts.to_pylist()]))
        if option.TEXT_LOWER2UPPER in options:
            texts = pc.utf8_upper(texts)
        if option.TEXT_UPPER2LOWER in options:
            texts = pc.utf8_lower(texts)
        if option.TEXT_FILTER in options:
            texts = pc.replace_substring_regex(texts, self.removed, "")
        if option.TEXT_REMOVE_SPACE in options:
            texts = pc.replace_substring_regex(texts, r"[\s\p{Z}]+", "")
        if option.TEXT_SPLITCHRS in options:
            texts = pc.replace_substring_regex(texts, r"\s*(\p{Han})", r" \1")
            texts = pc.replace_substring_regex(texts, r"(\p{Han})(\S)", r"\1 \2")
        return texts


def cleaner_of(config: TextNormalizer, folder: str | None) -> Cleaner:
    options, option = frozenset(config.norm_options or _USUAL_OPTIONS), TextNormalizeOption
    if option.TEXT_CHT2CHS in options:
        problem = "TEXT_CHT2CHS is not available; convert the texts before, and leave it out"
        raise ConfigError.at("text_normalizer.norm_options", problem)
    if {option.TEXT_LOWER2UPPER, option.TEXT_UPPER2LOWER} <= options:
        problem = "TEXT_LOWER2UPPER and TEXT_UPPER2LOWER undo each other; leave out one"
        raise ConfigError.at("text_normalizer.norm_options", problem)
    removed = r"[\p{P}\p{S}]"
    if config.stop_char_file is not None:
        file = Path(folder or "") / config.stop_char_file
        try:
            characters = sorted(set(file.read_text(encoding="utf-8")) - set("\r\n"))
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError.at(
                "text_normalizer.stop_char_file", f"{file} cannot be read: {error}"
            ) from error
        removed = "[" + "".join(f"\\x{{{ord(each):X}}}" for each in characters) + "]" if characters else "$^"
    return Cleaner(options, removed, config.max_length)


class _Bpe:
    """What the `tokenizers` library reads from a tokenizer.json."""

    def __init__(self, file: str) -> None:
        import tokenizers

        self.tokenizer = tokenizers.Tokenizer.from_file(file)
        self.tokenizer.no_padding()
        self.num_rows = max(self.tokenizer.get_vocab().values()) + 1

    def __call__(self, texts: list[str]) -> list[list[int]]:
        return [found.ids for found in self.tokenizer.encode_batch_fast(texts, add_special_tokens=False)]


class _SentencePiece:
    def __init__(self, file: str) -> None:
        import sentencepiece

        self.tokenizer = sentencepiece.SentencePieceProcessor(model_file=file)
        self.num_rows = int(self.tokenizer.get_piece_size())

    def __call__(self, texts: list[str]) -> list[list[int]]:
        return list(self.tokenizer.encode(texts))


_KINDS: dict[str, tuple[type[_Bpe | _SentencePiece], str]] = {
    "bpe": (_Bpe, "tokenizers"),
    "sentencepiece": (_SentencePiece, "sentencepiece"),
}


def _load(config: TokenizeFeature) -> _Bpe | _SentencePiece:
    file = Path(config.asset_dir or "") / config.vocab_file
    kind, library = _KINDS[config.tokenizer_type]
    if not file.is_file():
        raise ConfigError.at("vocab_file", f"there is no file {file}")
    try:
        return kind(str(file))
    except ModuleNotFoundError as error:
        problem = f"{config.tokenizer_type} needs the library {library}: pip install 'penstock[text]'"
        raise ConfigError.at("tokenizer_type", problem) from error
    except Exception as error:  # both libraries raise what they like
        problem = f"{file} cannot be read by {library}: {str(error).splitlines()[0]}"
        raise ConfigError.at("vocab_file", problem) from error


@dataclass(frozen=True, slots=True)
class Tokens:
    """Texts -> the ids of their tokens."""

    tokenizer: _Bpe | _SentencePiece
    cleaner: Cleaner | None = None
    as_sequence: bool = False
    """Every token is a step."""

    default_ids: tuple[int, ...] = ()
    """Of a row without a token, where tokens are steps; else the encoding has them."""

    def __call__(self, inputs: Sequence[Values]) -> Values:
        texts = as_strings(inputs[0])
        assert isinstance(texts.items, Strings)
        ids, counts = self.ids_of(texts.items)
        lengths = sum_by_row(counts, texts.lengths)
        if not self.as_sequence:
            return Values(ids, lengths)
        if self.default_ids and (empty := lengths == 0).any():
            positions = np.repeat(np.cumsum(lengths, dtype=np.int64)[empty], len(self.default_ids))
            ids = np.insert(ids, positions, np.tile(self.default_ids, int(np.count_nonzero(empty))))
            lengths = np.where(empty, np.int32(len(self.default_ids)), lengths)
        return Values(ids, one_per_row(len(ids)), lengths)

    def ids_of(self, strings: Strings) -> tuple[Int64Array, Int32Array]:
        """The tokens of all texts, and how many each has."""
        texts = to_arrow(strings)
        found = self.tokenizer((texts if self.cleaner is None else self.cleaner(texts)).to_pylist())
        counts = np.fromiter(map(len, found), np.int32, len(found))
        return np.fromiter(chain.from_iterable(found), np.int64, int(counts.sum())), counts
