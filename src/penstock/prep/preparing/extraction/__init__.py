"""A raw file -> samples or arrays: by a function of the user, or by its columns."""
