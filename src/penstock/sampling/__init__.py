"""Record batch -> record batch with sampled candidates. Holds the options of the samplers so far."""
