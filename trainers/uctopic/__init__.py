"""UCTopic: vectors of mentions in their sentences, learned from pairs of mentions; and its fine-tuning by clusters."""
