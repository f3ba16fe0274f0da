"""Commands: raw text to datasets. `python -m pipelines` lists them."""

import schemas  # noqa: F401 - it decides how Ctrl-C ends a program
