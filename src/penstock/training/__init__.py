"""Train, evaluate, predict: the loops alone.

A loop takes built objects and builds nothing. It reads as a sentence: take a batch, take a step, record, evaluate
when due, save when due. What is due when is a `Cadence`; how far the run is, a `TrainingProgress` that the
checkpoint holds; who listens (log, bar, checkpoints, evaluation), the `Hooks` that the pipeline passes in.
"""
