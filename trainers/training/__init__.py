"""The training loop, and what the recipes share."""
