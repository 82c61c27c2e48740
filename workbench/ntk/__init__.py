"""Exact algorithms by infinite-width two-layer ReLU networks: kernel, templates, machines (arXiv 2502.16763)."""
