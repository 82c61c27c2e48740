"""Accuracy over the whole domain of 200,000,000 problems: counted, not sampled."""
