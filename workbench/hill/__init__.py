"""Exact units: the weights of exact arithmetic, written down or trained (the Hill Space report)."""
