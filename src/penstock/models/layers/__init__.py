"""Building blocks that several models share; one file each, tensors in and tensors out."""
