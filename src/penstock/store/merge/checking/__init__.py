"""Whether a store is what it should be."""
