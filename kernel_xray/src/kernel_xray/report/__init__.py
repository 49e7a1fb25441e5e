"""X-rays: run.py runs a function under the tracer; findings.py turns the trace into a `report.Report`."""
