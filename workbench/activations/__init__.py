"""Activations in memory and on disk: collect them at chosen hooks, export them in shards, read them back, join them."""
