"""Constituents to phrases: normalising, finding, counting."""
