"""What the files of a store look like, for every target."""
