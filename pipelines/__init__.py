"""Commands: raw text to datasets. `python -m pipelines` lists them."""
