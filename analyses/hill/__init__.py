"""The Hill Space report: its tables reproduced, its figures drawn, its open questions answered; one file each."""
