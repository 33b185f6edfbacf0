"""Parameters -> optimizers and schedules.

Embedding tables are updated inside the backward pass by a fused kernel (`sparse`); everything else by an
ordinary torch optimizer (`dense`). A schedule (`schedules`) is a pure function from completed steps and
epochs to a learning rate; `set_learning_rate` (`rates`) brings it to either kind, in force at the very next
step.
"""
