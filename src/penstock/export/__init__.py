"""A trained model -> an artifact that runs without the training code. Holds its options so far."""
