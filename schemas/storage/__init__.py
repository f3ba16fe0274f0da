"""Where datasets lie: folders on a disk or an object store, files written whole or not at all, addresses."""
