"""Cases: instances with their data and expected results, re-runs, selection, results."""
