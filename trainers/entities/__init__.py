"""The training of the entity finder `phrasemill`."""
