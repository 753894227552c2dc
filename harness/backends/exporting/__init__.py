"""Model files of formats that only their own package writes.  The classes run inside a worker, as backends do."""
