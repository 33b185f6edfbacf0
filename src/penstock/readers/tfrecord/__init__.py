"""TFRecord files of tf.train.Example -> record batches, without TensorFlow.

One pass over the headers of the records makes an index (`framing.py`), a look at records all over the files finds
columns that are not declared (`inference.py`, `features.py`). Then compiled loops go over the bytes of some
records: `locate.py` checks them and finds the wanted features, `take.py` turns these into columns (`columns.py`).
Chunks, shares and places are those of all indexed files (`penstock.readers.text`).
"""
