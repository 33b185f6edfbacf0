"""Train, evaluate, predict: takes built objects and builds nothing.

A `Trainer` draws finished steps from a pipeline and decides what is due: log, save, evaluate, stop, restore the best.
It reports by events what happened; log, bar, TensorBoard and a user's callbacks listen and change nothing. How far a
run is, is a `TrainingProgress`; everything with a state is Resumable under a name and goes into one checkpoint.
"""
