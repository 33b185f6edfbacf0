import io
import pickle
import sys
from itertools import chain

import pyarrow as pa
import pytest
import sentencepiece
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from penstock.config.errors import ConfigError
from penstock.features import build_features
from penstock.features.parser import Parser
from penstock.features.sections import FeatureConfig, ParsingSection
from penstock.features.sections.types import TextNormalizer
from penstock.features.tokenize import cleaner_of

TITLES = ["red shoes for running", "blue shoes for walking", "red coat"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A tokenizer of each kind, trained on the titles: the folder, and what each makes of a text."""
    folder = tmp_path_factory.mktemp("tokenizers")
    bpe = Tokenizer(models.BPE(unk_token="[UNK]"))
    bpe.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(vocab_size=60, special_tokens=["[UNK]"], show_progress=False)
    bpe.train_from_iterator(TITLES, trainer)
    bpe.save(str(folder / "tokenizer.json"))
    model = io.BytesIO()
    options = {"vocab_size": 25, "hard_vocab_limit": False, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(TITLES), model_writer=model, **options)
    (folder / "pieces.model").write_bytes(model.getvalue())
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    return {
        "bpe": (folder / "tokenizer.json", lambda text: bpe.encode(text).ids, bpe.get_vocab_size()),
        "sentencepiece": (folder / "pieces.model", pieces.encode, pieces.get_piece_size()),
    }


@pytest.fixture
def tokenized(files):
    """Builds a feature of the column `title`: tokenized("bpe", "FG_NORMAL", embedding_name=...)."""

    def build(kind, mode="FG_NORMAL", *, prefix="", **options):
        fields = {
            "feature_name": "title",
            "embedding_dim": 4,
            "tokenizer_type": kind,
            "vocab_file": str(files[kind][0]),
        }
        config = FeatureConfig.model_validate({f"{prefix}tokenize_feature": {**fields, **options}})
        return build_features([config], ParsingSection.model_validate({"fg_mode": mode}))[0]

    return build


def column_of(feature, titles):
    return Parser([feature]).parse(pa.record_batch({"title": titles})).features["title"]


@pytest.mark.parametrize("kind", ["bpe", "sentencepiece"])
def test_texts_become_the_ids_of_their_tokens(tokenized, files, kind):
    _, encode, num_tokens = files[kind]
    feature = tokenized(kind)

    column = column_of(feature, ["red shoes", None, "", "blue coat"])

    first, last = encode("red shoes"), encode("blue coat")
    assert column.values.tolist() == first + last
    assert column.lengths.tolist() == [len(first), 0, 0, len(last)]
    assert feature.table.num_rows == num_tokens


def test_a_missing_row_has_the_tokens_of_the_default(tokenized, files):
    column = column_of(tokenized("bpe", default_value="red coat"), ["", "blue"])

    encode = files["bpe"][1]
    assert column.values.tolist() == encode("red coat") + encode("blue")


@pytest.mark.parametrize("kind", ["bpe", "sentencepiece"])
def test_encoded_input_holds_the_ids(tokenized, kind):
    column = column_of(tokenized(kind, "FG_NONE"), ["3\x034", "", "1"])

    assert (column.values.tolist(), column.lengths.tolist()) == ([3, 4, 1], [2, 0, 1])


def test_tokens_may_be_the_steps_of_a_sequence(tokenized, files):
    encode = files["sentencepiece"][1]
    options = {"tokens_as_sequence": True, "sequence_length": 3, "default_value": "red coat"}
    feature = tokenized("sentencepiece", **options)

    column = column_of(feature, ["red shoes for running", "", "red"])

    expected = [encode("red shoes for running")[:3], encode("red coat")[:3], encode("red")[:3]]
    assert column.values.tolist() == [*chain(*expected)]
    assert column.steps.tolist() == [len(ids) for ids in expected]
    assert (column.lengths == 1).all()
    assert column_of(tokenized("bpe", "FG_NONE", tokens_as_sequence=True), [[1, 2], [3]]).steps.tolist() == [
        2,
        1,
    ]


def test_each_step_of_a_sequence_of_texts_has_its_tokens(tokenized, files):
    encode = files["bpe"][1]

    column = column_of(tokenized("bpe", prefix="sequence_"), ["red;blue coat", "shoes"])

    parts = [encode("red"), encode("blue coat"), encode("shoes")]
    assert column.values.tolist() == [*chain(*parts)]
    assert (column.lengths.tolist(), column.steps.tolist()) == ([len(part) for part in parts], [2, 1])


@pytest.mark.parametrize("kind", ["bpe", "sentencepiece"])
def test_a_tokenizer_goes_to_other_processes(tokenized, files, kind):
    feature = pickle.loads(pickle.dumps(tokenized(kind)))  # noqa: S301

    assert column_of(feature, ["red"]).values.tolist() == files[kind][1]("red")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["TEXT_UPPER2LOWER"], "a-b \uff43 中文 \uff01"),
        (["TEXT_LOWER2UPPER", "TEXT_SBC2DBC"], "A-B C 中文 !"),
        (["TEXT_FILTER"], "Ab \uff23 中文 "),
        (["TEXT_REMOVE_SPACE"], "A-b\uff23中文\uff01"),
        (["TEXT_SPLITCHRS", "TEXT_REMOVE_SPACE"], "A-b\uff23 中 文 \uff01"),
        ([], "AB C 中文 "),
    ],
)
def test_texts_are_cleaned(options, expected):
    cleaner = cleaner_of(TextNormalizer.model_validate({"norm_options": options}), None)

    assert cleaner(pa.array(["A-b \uff23 中文 \uff01"], pa.large_string())).to_pylist() == [expected]


def test_stop_characters_and_length(tmp_path):
    (tmp_path / "stop.txt").write_text("a\n]\n")
    section = {"norm_options": ["TEXT_FILTER"], "stop_char_file": "stop.txt", "max_length": 5}
    cleaner = cleaner_of(TextNormalizer.model_validate(section), str(tmp_path))

    assert cleaner(pa.array(["ba]-éxyz"], pa.large_string())).to_pylist() == ["b-é"]


def test_a_cleaned_text_is_tokenized(tokenized, files):
    options = {"text_normalizer": {"norm_options": ["TEXT_UPPER2LOWER", "TEXT_FILTER"]}}

    assert column_of(tokenized("bpe", **options), ["RED! shoes"]).values.tolist() == files["bpe"][1](
        "red shoes"
    )


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"vocab_file": "no.json"}, "vocab_file: there is no file no.json"),
        (
            {"text_normalizer": {"norm_options": ["TEXT_CHT2CHS"]}},
            (
                "text_normalizer.norm_options: TEXT_CHT2CHS is not available; convert the texts before, and "
                "leave it out"
            ),
        ),
    ],
)
def test_wrong_options(tokenized, options, problem):
    with pytest.raises(ConfigError) as caught:
        tokenized("bpe", **options)

    assert str(caught.value) == f"feature_configs[0].tokenize_feature.{problem}"


def test_a_file_that_is_no_tokenizer_is_refused(tokenized, files):
    with pytest.raises(ConfigError, match=r"vocab_file: .*pieces.model cannot be read by tokenizers: "):
        tokenized("bpe", vocab_file=str(files["sentencepiece"][0]))


def test_without_the_library_one_line_says_what_to_install(tokenized, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)

    with pytest.raises(ConfigError) as caught:
        tokenized("bpe")

    assert str(caught.value) == (
        "feature_configs[0].tokenize_feature.tokenizer_type: bpe needs the library tokenizers: "
        "pip install 'penstock[text]'"
    )
