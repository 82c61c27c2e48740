"""Ways to compute one training step; `plain` is the oracle the others are compared with."""
