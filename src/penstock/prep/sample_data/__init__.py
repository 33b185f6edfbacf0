"""Data with a known answer: rows whose labels are drawn from a planted model.

A kind ("clicks", "criteo") makes blocks of rows, each from a generator of its own, so that row i is the same
however rows are cut into files; a raw kind ("game") writes files that are still to be prepared. While rows are
written, the true probabilities are scored against the drawn labels: the best AUC or accuracy any model can reach is
known, printed, and kept in sample.json.
"""
