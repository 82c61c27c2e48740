"""Train, load and run small arithmetic transformers and the exact units they are compared with."""

__version__ = "0.1.0"
