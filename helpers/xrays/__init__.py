"""X-rays: `run.py` runs a function under the tracer, `findings.py` turns what it recorded into a `report.Report`."""
