"""A folder for PYTHONPATH: whatever interpreter finds it there records what its program launches."""
