"""What must hold for the plain text and the links of a page with any markup."""

from __future__ import annotations

import re
from collections.abc import Sequence

from transforms.sources.items import Link


def assert_prose(text: str, links: Sequence[Link]) -> None:
    """Assert that the text is tidy, and that the links are at their anchors, one after the other."""
    assert not re.search(r"[\x00-\x08\x0b-\x1f\u00a0\u00ad\ufdd0]", text)
    assert not re.search(r"  | \n|\n |\n\n\n|^\s|\s$", text)
    end = 0
    for link in links:
        assert end <= link.start_char < link.end_char <= len(text)
        anchor = text[link.start_char : link.end_char]
        assert anchor == anchor.strip() != ""
        assert "\n" not in anchor
        assert link.target_title == link.target_title.strip() != ""
        assert not re.search(r"[\x00-\x1f#_]", link.target_title)
        end = link.end_char
