"""The parts of the loader (trainers/data.py)."""
