"""The dataset card: README.md with the metadata header that `datasets.load_dataset` and dataset hubs read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import jinja2
import pyarrow as pa
import yaml

from schemas.kind import Kind
from schemas.manifest import Manifest
from schemas.shown import Row
from transforms.reports.figures import plain, printable

_STEPS = ("1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T")
"""The bounds of the hubs' size categories."""

_LICENCES = frozenset(
    {"unknown", "cc0-1.0", "gfdl", "odbl", "odc-by", "pddl", "mit", "apache-2.0", "unlicense", "wtfpl"}
    | {f"cc-by-{version}" for version in ("2.0", "2.5", "3.0", "4.0")}
    | {f"cc-by-{terms}-{version}" for terms in ("sa", "nc", "nd", "nc-sa", "nc-nd") for version in ("3.0", "4.0")}
)
"""The hubs' identifiers of licences that texts may have. Any other licence is "other", and its name is given too."""

_CARD = jinja2.Template(
    """---
{{ header }}---
# {{ name }}

{{ manifest.record }} records made by phrasemill {{ manifest.versions.get("phrasemill", "") }}; fingerprint \
`{{ manifest.fingerprint[:16] }}`. `manifest.json` holds the options, the inputs, the ledgers and the sha256 of every \
shard; `phrasemill check DIR` verifies them. `report.html` shows counts, distributions, sample rows and rejects.

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
{% if lines -%}
## Rows

{% for line in lines -%}
{{ line }}
{% endfor %}
{% endif -%}
## What became of the input

| stage | counts | read | written | filtered | rejected |
|---|---|---|---|---|---|
{% for stage in manifest.stages if stage.ledger -%}
| {{ stage.name }} | {{ stage.ledger.counts }} | {{ "{:,}".format(stage.ledger.read) }} \
| {{ "{:,}".format(stage.ledger.written) }} | {{ reasons(stage.ledger.filtered) }} \
| {{ reasons(stage.ledger.rejected) }} |
{% endfor %}
{% for note in notes -%}
{{ note }}

{% endfor -%}
## Inputs

{% for each in manifest.inputs[:100] -%}
- {{ each.kind }} `{{ inline(each.name) }}` ({{ each.hash[:16] }})
{% endfor %}{% if manifest.inputs | length > 100 %}- and {{ manifest.inputs | length - 100 }} more
{% endif %}
{% if licences or manifest.kind.licence -%}
## Licences of the text

{% for licence, documents in licences[:100] -%}
- {{ inline(licence) }}: {{ "{:,}".format(documents) }} documents
{% endfor %}{% if licences | length > 100 %}- and {{ licences | length - 100 }} more
{% endif %}
{{ licence_of_a_record }}
{% endif -%}
""",
    trim_blocks=False,
    keep_trailing_newline=True,
)


def dataset_card(manifest: Manifest, *, name: str, rows: Sequence[Row] = ()) -> str:
    """The card's text, Markdown below a YAML header; `rows` are shown as examples.

    The header's `description` depends on the contents: `datasets` identifies a dataset in its cache by the folder's
    name and the header alone, and might return the rows of a dataset that was in the folder before. The header leaves
    out splits without rows, on which `datasets` fails.
    """
    columns = [(each.name, _short(str(each.type)), each.metadata[b"description"].decode()) for each in manifest.schema]
    header = yaml.dump(_header(manifest, name), Dumper=_Plain, sort_keys=False, allow_unicode=True, width=1000)
    licences = sorted(manifest.licences.items(), key=lambda each: (-each[1], each[0]))
    return _CARD.render(
        licences=licences,
        licence_of_a_record=_licence_of_a_record(manifest.kind),
        lines=_code([line for row in rows for line in manifest.kind.show(row, manifest.options).lines()]),
        manifest=manifest,
        notes=manifest.notes,
        name=_inline(name),
        header=header,
        columns=columns,
        reasons=_reasons,
        inline=_inline,
    )


class _Plain(yaml.SafeDumper):
    """Writes a value that occurs twice twice: not every hub reads references."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _code(lines: Sequence[str]) -> list[str]:
    """Lines as an indented code block: nothing in them is markup, and no line can end the block."""
    return [" " * (4 + len(line) - len(line.lstrip(" "))) + printable(line) for line in lines]


def _licence_of_a_record(kind: Kind) -> str:
    names = kind.schema.names
    if kind.licence:
        return kind.licence
    if "licence" in names:
        return "Each record keeps the licence of the document that it comes from."
    if "doc_id" in names:
        return (
            "The licence of a record is that of its document, which is found by `doc_id` in the documents dataset that "
            "this one was made from."
        )
    return "A record comes from many documents, of any of these licences."


def _header(manifest: Manifest, name: str) -> dict[str, Any]:
    """The metadata for hubs and `datasets`, in their terms."""
    found: dict[str, Any] = {"pretty_name": name, **_licences(manifest)}
    kind = manifest.kind
    if kind.parsed:
        found["language"] = ["en"]
    if kind.tasks:
        annotations = ["machine-generated" if kind.parsed else "found"]
        found |= {"task_categories": [*kind.tasks], "annotations_creators": annotations}
    found |= {"source_datasets": ["original"], "size_categories": [_size(manifest.rows)]}
    filled = {split: shards for split, shards in manifest.splits.items() if any(each.rows for each in shards)}
    files = [{"split": split, "path": f"data/{split}-*.parquet"} for split in filled]
    whole = {"config_name": "default", "description": f"sha256 {manifest.sha256}", "data_files": files}
    size = sum(each.bytes for shards in filled.values() for each in shards)
    about = {
        "splits": [
            {
                "name": split,
                "num_bytes": sum(each.bytes for each in shards),
                "num_examples": sum(each.rows for each in shards),
            }
            for split, shards in filled.items()
        ],
        "download_size": size,
        "dataset_size": size,
    }
    views = {"default": tuple(manifest.schema.names), **kind.views}
    found["configs"] = [
        whole | ({"config_name": name, "columns": [*columns]} if name in kind.views else {})
        for name, columns in views.items()
    ]
    infos = [
        {"config_name": name, "features": [_feature(manifest.schema.field(each)) for each in columns], **about}
        for name, columns in views.items()
    ]
    found["dataset_info"] = infos if kind.views else infos[0]
    return found | {"tags": ["phrasemill", "phrase-representations"]}


def _feature(field: pa.Field) -> dict[str, Any]:
    """A column in the form of the card's header."""
    if pa.types.is_list(field.type):
        of = field.type.value_type
        return {"name": field.name, "list": [_feature(each) for each in of] if pa.types.is_struct(of) else _dtype(of)}
    if pa.types.is_struct(field.type):
        return {"name": field.name, "struct": [_feature(each) for each in field.type]}
    return {"name": field.name, "dtype": _dtype(field.type)}


def _dtype(type_: pa.DataType) -> str:
    """The name that `datasets` has for a type."""
    return {"halffloat": "float16", "float": "float32", "double": "float64"}.get(str(type_), str(type_))


def _licences(manifest: Manifest) -> dict[str, Any]:
    """The licences of the texts by the hubs' identifiers, with the names of those that have none."""
    identifiers = {each: re.sub(r"\s+", "-", each.strip().lower()) for each in manifest.licences}
    found = sorted({each if each in _LICENCES else "other" for each in identifiers.values()})
    others = sorted(name for name, identifier in identifiers.items() if identifier not in _LICENCES)
    header: dict[str, Any] = {"license": found[0] if len(found) == 1 else found} if found else {}
    if others:
        header["license_name"] = re.sub(r"[^a-z0-9.]+", "-", "-or-".join(others).lower())[:80].strip("-") or "other"
        header["license_details"] = ", ".join(map(_inline, others))[:1000]
    return header


def _inline(text: str) -> str:
    """A name that cannot become markup: on one line, without the characters that Markdown or a table interprets."""
    return " ".join(re.sub(r"[`|<>\[\]]", " ", text).split())[:200]


def _size(rows: int) -> str:
    """The size category of a number of rows.

    >>> [_size(rows) for rows in (999, 1_000, 10**12)]
    ['n<1K', '1K<n<10K', 'n>1T']
    """
    place = max(len(str(rows)) - 3, 0)
    if place == 0:
        return f"n<{_STEPS[0]}"
    return f"{_STEPS[place - 1]}<n<{_STEPS[place]}" if place < len(_STEPS) else f"n>{_STEPS[-1]}"


def _reasons(counts: Counter[str]) -> str:
    if not counts:
        return "0"
    return ", ".join(f"{n:,} {plain(reason)}" for reason, n in counts.most_common())


def _short(type_: str) -> str:
    return type_.replace(" not null", "").replace("element: ", "")
