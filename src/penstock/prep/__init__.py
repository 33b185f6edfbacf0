"""Work on whole data sets, before training: made, rewritten, counted, in bounded memory.

Each task reads and writes blocks of rows, so that what it holds does not depend on how many rows there are.
`sample_data` makes data whose best possible model is known.
"""
