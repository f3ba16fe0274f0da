"""The contract: records, manifest, reading and checking a dataset. Imports neither Beam nor torch."""
