"""Questions about learned and exact arithmetic, one file each."""
