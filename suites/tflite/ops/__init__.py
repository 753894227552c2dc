"""Entries of the TFLite dialect, one file per family."""
