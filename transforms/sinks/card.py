"""The dataset card: README.md with the metadata header that `datasets.load_dataset` and dataset hubs read."""

from __future__ import annotations

from collections import Counter

import jinja2

from schemas.manifest import Manifest

_SIZES = [(10**n, f"{low}<n<{high}") for n, low, high in (
    (3, "n", "1K"), (4, "1K", "10K"), (5, "10K", "100K"), (6, "100K", "1M"), (7, "1M", "10M"), (8, "10M", "100M"),
    (9, "100M", "1B"), (12, "1B", "1T"),
)]

_LICENCES = {"CC BY-SA 4.0": "cc-by-sa-4.0", "CC BY-SA 3.0": "cc-by-sa-3.0", "CC0 1.0": "cc0-1.0"}

_CARD = jinja2.Template(
    """---
pretty_name: {{ name }}
{% if licences -%}
license:
{% for each in licences %}- {{ each }}
{% endfor -%}
{% endif -%}
size_categories:
- {{ size }}
configs:
- config_name: default
  data_files:
{% for split, shards in manifest.splits.items() %}  - split: {{ split }}
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
    """The card's text, Markdown below a YAML header."""
    size = next(label for most, label in _SIZES if manifest.rows < most)
    licences = sorted({_LICENCES.get(each, "other") for each in manifest.licences})
    columns = [(each.name, _short(str(each.type)), each.metadata[b"description"].decode()) for each in manifest.schema]
    return _CARD.render(
        manifest=manifest, name=name, size=size, licences=licences, columns=columns, reasons=_reasons
    )


def _reasons(counts: Counter[str]) -> str:
    if not counts:
        return "0"
    return ", ".join(f"{n:,} {reason.replace('_', ' ')}" for reason, n in counts.most_common())


def _short(type_: str) -> str:
    return type_.replace(" not null", "").replace("element: ", "")
