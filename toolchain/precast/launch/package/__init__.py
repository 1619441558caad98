"""What goes into a release's Python package."""
