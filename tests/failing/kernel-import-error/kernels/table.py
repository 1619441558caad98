TABLE = {}
