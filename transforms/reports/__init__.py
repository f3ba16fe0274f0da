"""What people read of a dataset: the card, the report with its charts, rejects."""
