"""The files of a new project, as `precast init` writes them. Each is a Jinja2 template named by its place."""
