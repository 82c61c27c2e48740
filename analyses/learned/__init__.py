"""Questions about checkpoints."""
