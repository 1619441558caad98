"""Releases: assembled from what the graph built, verified, signed, packaged, cleaned away.

In: images, libraries and sources of one plan. Out: a directory that is complete when it appears and is never
written again; its manifest names every file with its digest.
"""
