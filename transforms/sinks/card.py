"""The dataset card: README.md with the metadata header that `datasets.load_dataset` and dataset hubs read."""

from __future__ import annotations

from collections import Counter

import jinja2

from schemas.manifest import Manifest

_STEPS = ("1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T")
"""Bounds of the hubs' size categories, from a thousand rows on."""

_LICENCES = {"CC BY-SA 4.0": "cc-by-sa-4.0", "CC BY-SA 3.0": "cc-by-sa-3.0", "CC0 1.0": "cc0-1.0"}

_CARD = jinja2.Template(
    """---
pretty_name: {{ name | tojson }}
{% if licences -%}
license:
{% for each in licences %}- {{ each }}
{% endfor -%}
{% endif -%}
size_categories:
- {{ size }}
configs:
- config_name: default
  description: sha256 {{ manifest.sha256 }}
  data_files:
{% for split, shards in manifest.splits.items() if shards | sum(attribute="rows") %}  - split: {{ split }}
    path: data/{{ split }}-*.parquet
{% endfor -%}
tags:
- phrasemill
- phrase-representations
---
# {{ name }}

{{ manifest.record }} records made by phrasemill {{ manifest.versions.get("phrasemill", "") }}; fingerprint \
`{{ manifest.fingerprint[:16] }}`. `manifest.json` holds the options, the inputs, the ledgers and the sha256 of every \
shard; `python -m schemas.check DIR` verifies them.

| split | rows | shards | bytes |
|---|---|---|---|
{% for split, shards in manifest.splits.items() -%}
| {{ split }} | {{ "{:,}".format(shards | sum(attribute="rows")) }} | {{ shards | length }} | \
{{ "{:,}".format(shards | sum(attribute="bytes")) }} |
{% endfor %}
## Columns

| column | type | meaning |
|---|---|---|
{% for each in columns -%}
| `{{ each[0] }}` | `{{ each[1] }}` | {{ each[2] }} |
{% endfor %}
## What became of the input

| stage | counts | read | written | filtered | rejected |
|---|---|---|---|---|---|
{% for stage in manifest.stages if stage.ledger -%}
| {{ stage.name }} | {{ stage.ledger.counts }} | {{ "{:,}".format(stage.ledger.read) }} \
| {{ "{:,}".format(stage.ledger.written) }} | {{ reasons(stage.ledger.filtered) }} \
| {{ reasons(stage.ledger.rejected) }} |
{% endfor %}
## Inputs

{% for each in manifest.inputs -%}
- {{ each.kind }} `{{ each.name }}` ({{ each.hash[:16] }})
{% endfor %}
{% if manifest.licences -%}
## Licences of the text

{% for licence, documents in manifest.licences.items() -%}
- {{ licence }}: {{ "{:,}".format(documents) }} documents
{% endfor %}
Each record keeps the licence of the document that it comes from.
{% endif -%}
""",
    trim_blocks=False,
    keep_trailing_newline=True,
)


def dataset_card(manifest: Manifest, *, name: str) -> str:
    """The card's text, Markdown below a YAML header.

    The header's `description` tells the contents: `datasets` looks up its cache by the folder's name and the header
    alone, and would give the rows of another dataset that was written there before. It fails on a split without rows,
    which the header therefore leaves out.
    """
    licences = sorted({_LICENCES.get(each, "other") for each in manifest.licences})
    columns = [(each.name, _short(str(each.type)), each.metadata[b"description"].decode()) for each in manifest.schema]
    return _CARD.render(
        manifest=manifest, name=name, size=_size(manifest.rows), licences=licences, columns=columns, reasons=_reasons
    )


def _size(rows: int) -> str:
    """The size category of so many rows: "n<1K", "1K<n<10K" ... "n>1T"."""
    place = max(len(str(rows)) - 3, 0)
    if place == 0:
        return f"n<{_STEPS[0]}"
    return f"{_STEPS[place - 1]}<n<{_STEPS[place]}" if place < len(_STEPS) else f"n>{_STEPS[-1]}"


def _reasons(counts: Counter[str]) -> str:
    if not counts:
        return "0"
    return ", ".join(f"{n:,} {reason.replace('_', ' ')}" for reason, n in counts.most_common())


def _short(type_: str) -> str:
    return type_.replace(" not null", "").replace("element: ", "")
