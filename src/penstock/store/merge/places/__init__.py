"""Which sample goes to which split, and to which place in it."""
