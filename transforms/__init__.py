"""The work, one folder a subject: pure functions on records and Arrow batches."""
