"""Tables and streams -> TFRecord files of tf.train.Example, without TensorFlow.

Columns are brought into three forms, lists of int64, of float32 and of bytes (`columns.py`); compiled loops then
write the records of many rows at once (`encode.py`), and `write.py` puts them into files that are whole or absent.
"""
