"""Every operator of the course: its files, reference, dtypes, shapes, bytes or FLOPs, and peers."""
