"""Hyperlink mentions: their targets resolved, paired and masked (UCTopic; docs/mentions.md)."""
