"""Tasks in several processes, or on Ray."""
