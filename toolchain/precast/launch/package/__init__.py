"""What goes into a release's Python package as it is."""
