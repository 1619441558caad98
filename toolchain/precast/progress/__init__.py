"""What a build says, to people and to programs: the events of a build in, text on streams and files out."""
