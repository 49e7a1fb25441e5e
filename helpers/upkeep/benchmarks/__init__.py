"""Benchmarks: operators on a GPU (`command`, `campaign`, `worker`, `cell`, `timer`) and our own tools (`tools`)."""
