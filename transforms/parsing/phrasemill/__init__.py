"""Our own constituent parser: a small Transformer over WordPieces that scores every span of a sentence."""
