"""The shared cache: what one machine compiled, taken over by others.

In: keys and entries. Out: the same entries, whole and undamaged, or nothing; one warning for a cache that fails, never
a failed build. A place holds bytes under two kinds of names, as Bazel's remote caches do: `cas/<sha256>` for blobs,
`ac/<key>` for the message that says what belongs to a key.
"""
