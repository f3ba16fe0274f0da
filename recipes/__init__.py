"""The recipes of the papers: see pipelines/recipe.py."""
