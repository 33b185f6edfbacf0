"""Arrays on disk: batch files, manifests, merge. Empty so far; it has its place in the order of imports."""
