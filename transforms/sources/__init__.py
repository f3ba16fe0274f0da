"""Raw text of many formats to documents."""
