"""What the benchmark scripts share: data to measure on, and repeats that alternate."""
