"""The error that ends a run of rillcc."""


class RillccError(Exception):
    """A message for the user, with the place in the source that it is about, if there is one."""

    def __init__(self, message, file=None, line=None):
        place = "" if file is None else file + ": " if line is None else "%s:%d: " % (file, line)
        super().__init__(place + message)
