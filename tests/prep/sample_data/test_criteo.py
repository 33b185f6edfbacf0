import pyarrow as pa
import pytest

from penstock.prep.sample_data.blocks import BLOCK_ROWS
from penstock.prep.sample_data.criteo import Criteo


def test_thirteen_numbers_and_twenty_six_ids():
    rows = Criteo(0).block(0).rows

    assert rows.num_rows == BLOCK_ROWS
    assert rows.schema.names == [
        "label",
        *(f"int_{place}" for place in range(1, 14)),
        *(f"cat_{place}" for place in range(1, 27)),
    ]
    assert {rows.schema.field(f"int_{place}").type for place in range(1, 14)} == {pa.float32()}
    assert {rows.schema.field(f"cat_{place}").type for place in range(1, 27)} == {pa.int64()}


def test_some_numbers_are_often_missing_and_some_never():
    rows = Criteo(0).block(0).rows

    shares = {place: rows[f"int_{place}"].null_count / BLOCK_ROWS for place in (2, 3, 12)}
    assert shares == {2: 0.0, 3: pytest.approx(0.2, abs=0.02), 12: pytest.approx(0.75, abs=0.02)}
