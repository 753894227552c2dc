"""Evidence: minimal instances, reproduction folders and scripts, reports on known differences."""
