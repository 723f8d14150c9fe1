"""The exception that ends a run of rillcc."""


class RillccError(Exception):
    """A message for the user, preceded by the file and line of the source if they are known."""

    def __init__(self, message, file=None, line=None):
        place = "" if file is None else file + ": " if line is None else "%s:%d: " % (file, line)
        super().__init__(place + message)
