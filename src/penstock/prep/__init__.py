"""Work on whole data sets, before training: prepared, rewritten, profiled, in bounded memory.

`prepare` makes batch files of raw files with a user's function or by columns; `rewrite` makes well-sized Parquet files,
shuffled by `external_shuffle` if asked; `profile` and `data_advice` say what is in the data; `hashes` compares values
of any type; `sample_data` makes data whose best possible model is known. Each reads and writes blocks of
rows: what it holds does not depend on their number.
"""
