"""The stages of the pipelines, one module a subject."""
