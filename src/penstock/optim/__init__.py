"""Parameters -> optimizers and schedules.

Embedding tables are updated inside the backward pass, by a fused kernel or row by row (`sparse`);
everything else by ordinary torch optimizers, also by part, with running means beside them (`dense`).
A schedule (`schedules`) is a function from completed steps and epochs to a learning rate; `set_learning_rate` brings
it to either kind, in force at the very next step.
"""
