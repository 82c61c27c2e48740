"""Questions about exact kernel machines, one file each."""
