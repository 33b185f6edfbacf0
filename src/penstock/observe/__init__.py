"""Who listens and who looks: log, TensorBoard, report page, inspect, advice, summary.

Nothing here decides anything about a run.
"""
