"""Forecasts of mentions, pairs of them and aliases.

Mentions grow with the documents. What is told of pages does, too, but for SQL dumps, which have a size of their own.
How many partners a mention finds is known of the sample only, where it has few: hence the wide intervals of pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from pipelines.engine.dataset_build import DatasetBuild
from pipelines.engine.exchange import n_ranges
from pipelines.engine.stage import Completion
from pipelines.planning.estimates import Estimate
from pipelines.planning.keys import Keys, pair_weights
from pipelines.planning.scale import (
    BYTES_A_ROW,
    NOTHING,
    Forecast,
    Scale,
    bytes_of,
    counter_of,
    rows_of,
    seconds_of,
    share_of,
    units_of,
)
from pipelines.stages.aliases import MENTIONS_A_RANGE, PairAliases
from pipelines.stages.mentions import ROWS_A_RANGE, SIDES_A_UNIT, FindMentions, ReadTables
from pipelines.stages.pairs import MEMBERS_A_RANGE, PAIRS_A_SHARD, Group
from schemas.manifest import SPLITS, Manifest

_TITLES_OF_MORE_TEXT = (0.5, 0.8, 1.0)
"""The distinct titles that a text links to grow by such a power of its length: at least, likely, at most."""
_MOST_DISAMBIGUATION = 0.04
"""Links to disambiguation pages, which a sample cannot know as such."""
_MOST_RED = 0.3
"""Links to no page: 5 to 10 % in large Wikipedias, more in small ones."""
_BYTES_A_TITLE = 250
"""Memory that `follow` takes for each title that anything is known of."""
_MEMBERS = (0.5, 0.9, 1.0)
"""Of the members that units would have if no key had more than may take part: those that they have."""
_ALIASES = (0.1, 0.3, 0.5)
"""Pairs of aliases for each frequent surface grow by such a power of the mentions: 0.4 from 1,000 to 20,000 of them."""
_FETCH_READS = 0.5
"""Reading the shards takes this share of the time of `fetch`; the rest goes with the pairs."""


class MentionForecaster:
    """Foretells mentions, aliases and pairs; see `Forecaster`."""

    def __init__(self, scale: Scale) -> None:
        self._scale, self._m = scale, scale.measured
        self._sides = self._mentions = NOTHING
        self._side_files: list[int] = []
        self._shards = NOTHING  # of mentions

    def given_documents(self, manifest: Manifest) -> None:
        sides = [manifest.sides.get(side, []) for side in ("pages", "redirects")]
        self._sides = Estimate.exactly(sum(shard.rows for shards in sides for shard in shards))
        self._side_files = [len(shards) for shards in sides]

    def made_documents(self, units: int) -> None:
        """Documents are to be extracted, in so many units."""
        if "read_tables" in self._m.stages:
            self._sides = self._m.total("extract", rows_of("pages", "redirects"), thinned=False)
            self._side_files = [units, units]

    def given_mentions(self, manifest: Manifest) -> None:
        self._mentions = Estimate.exactly(manifest.rows)
        self._shards = Estimate.exactly(len(manifest.shards))

    # ---- Mentions

    def mentions(self, build: DatasetBuild) -> Forecast:
        m, scale = self._m, self._scale
        read, find = build.stages[0], build.stages[-1]
        assert isinstance(read, ReadTables)
        assert isinstance(find, FindMentions)
        units = scale.units
        tables = m.stages["read_tables"]
        dumps = len(read.dumps)
        of_sides, of_dumps = tables[: len(tables) - dumps], tables[len(tables) - dumps :]
        seen_sides = sum(map(_told, of_sides))
        more_sides = self._sides * share_of(1, seen_sides)
        told = self._sides + Estimate.exactly(_each_times(of_dumps, _told, m.larger))
        more = share_of(told.middle, seen_sides + sum(map(_told, of_dumps)))
        ranges = scale.units_seen("resolve", told.map(lambda n: float(n_ranges(round(n), rows_a_range=ROWS_A_RANGE))))
        reading = more_sides * sum(map(seconds_of, of_sides)) + Estimate.exactly(
            _each_times(of_dumps, seconds_of, m.larger)
        )
        read_bytes = more_sides * sum(map(bytes_of(), of_sides)) + Estimate.exactly(
            _each_times(of_dumps, bytes_of(), m.larger)
        )
        read_units = Estimate.exactly(sum(-(-files // SIDES_A_UNIT) for files in self._side_files) + dumps)
        titles = self._titles(units)
        resolved = scale.like_sample("resolve", "resolved", titles)
        rows = m.total("mentions", rows_of("train"))
        kept = m.total("mentions", bytes_of("train"))
        if not m.pieces.is_whole:
            unknown = _MOST_DISAMBIGUATION * find.rules.drop_disambiguation + _MOST_RED * find.rules.drop_red_links
            likely = 0.25 * unknown
            rows, kept = (
                Estimate(each.low * (1 - unknown), each.middle * (1 - likely), each.high) for each in (rows, kept)
            )
            kept = kept.widened(0.1)
        self._mentions, self._shards = rows, units
        scale.more_memory.append(told.middle / max(ranges.middle, 1) * BYTES_A_ROW)
        scale.more_memory.append(told.middle * _BYTES_A_TITLE)
        if titles.middle:
            scale.grow("targets", "wanted", titles.middle, min(units.middle, ranges.middle))
        lines = [
            scale.line("read_tables", scale.units_seen("read_tables", read_units), reading, told, "facts", read_bytes),
            scale.scaled("join_tables", ranges if dumps else NOTHING, more),
            scale.scaled("follow", Estimate.exactly(1), more)._replace(rows=told, what="titles"),
            scale.line("targets", units, m.total("targets", seconds_of), titles, "titles", resolved),
            scale.scaled("resolve", ranges, share_of(titles.middle, m.sum("targets", rows_of("wanted"))))._replace(
                rows=titles, what="titles", bytes=resolved
            ),
            scale.line("mentions", units, m.total("mentions", seconds_of), rows, "mentions", kept),
        ]
        passing = sum((line.bytes for line in lines[:-1]), start=NOTHING)
        return Forecast(build.output, lines, kept, passing)

    def _titles(self, units: Estimate) -> Estimate:
        """Distinct titles that each unit links to, of all units together."""
        m = self._m
        seen = [rows_of("wanted")(each) for each in m.stages["targets"]]
        found = m.total("targets", rows_of("wanted"))
        if m.pieces.is_whole or not sum(seen):
            return found
        # A unit of the whole has more text than one of the sample.
        larger = max(found.middle / max(units.middle, 1) / (sum(seen) / len(seen)), 1)
        low, middle, high = (larger ** (power - 1) for power in _TITLES_OF_MORE_TEXT)
        return Estimate(found.low * low, found.middle * middle, found.high * high)

    # ---- Aliases

    def aliases(self, build: DatasetBuild) -> Forecast:
        m, scale = self._m, self._scale
        pair = build.stages[1]
        assert isinstance(pair, PairAliases)
        units = units_of(self._shards)
        keys = m.keys["alias"]
        counted = scale.or_seen("count_surfaces", rows_of("surfaces"), self._in_units(keys, units, [1.0]))
        counted_bytes = scale.like_sample("count_surfaces", "surfaces", counted)
        rows = scale.or_seen("pair_aliases", rows_of("train"), self._alias_pairs(pair, keys))
        kept = scale.like_sample("pair_aliases", "train", rows)
        ranges = self._mentions.map(lambda n: float(n_ranges(round(n), rows_a_range=MENTIONS_A_RANGE)))
        times = share_of(counted.middle, m.sum("count_surfaces", rows_of("surfaces")))
        scale.grow("count_surfaces", "surfaces", counted.middle, min(units.middle, ranges.middle))
        work = self._with_mentions("count_surfaces", counter_of("mentions"))
        lines = [
            scale.line("count_surfaces", units, work, counted, "surfaces", counted_bytes),
            scale.scaled("pair_aliases", ranges, times)._replace(rows=rows, what="alias pairs", bytes=kept),
        ]
        return Forecast(build.output, lines, kept, counted_bytes)

    def _alias_pairs(self, pair: PairAliases, keys: Keys) -> Estimate:
        """As many for each surface that is frequent enough as in the sample, and more as entities come to have more."""
        m = self._m
        frequent = [0.0] * (pair.min_count - 1) + [1.0]
        seen = m.sum("pair_aliases", rows_of("train"))
        surfaces = keys.seen(frequent)
        longer = max(share_of(self._mentions.middle, m.sum("count_surfaces", counter_of("mentions"))), 1)
        chance = 2 * math.sqrt(seen)
        of_each = Estimate(
            *(
                min(share_of(pairs, surfaces) * longer**power, (pair.aliases_per_entity - 1) / 2)
                for pairs, power in zip((max(seen - chance, 0), seen, seen + chance + 3), _ALIASES, strict=True)
            )
        )
        return keys.foretell(self._mentions, frequent) * of_each

    # ---- Pairs

    def pairs(self, build: DatasetBuild) -> Forecast:
        m, scale = self._m, self._scale
        group = build.stages[0]
        assert isinstance(group, Group)
        kinds = len(group.rules.kinds)
        units = units_of(self._shards)
        seen = m.sum("group", rows_of("members"))
        share = share_of(seen, m.sum("group", counter_of("mentions")) * kinds)
        low, middle, high = (share * each for each in _MEMBERS)
        grown = self._mentions * kinds
        members = scale.or_seen(
            "group", rows_of("members"), Estimate(grown.low * low, grown.middle * middle, grown.high * high)
        )
        rows = scale.or_seen("order_pairs", rows_of(*SPLITS), self._pairs(group))
        members_bytes = scale.like_sample("group", "members", members)
        sides_bytes = scale.like_sample("pair", "sides", rows * 2)
        fetched_bytes = scale.like_sample("fetch", "fetched-train", rows * 2)
        apart = max(m.full_size["order_pairs"], 1)
        kept = scale.or_seen("order_pairs", bytes_of(*SPLITS), scale.like_sample("order_pairs", "train", rows) * apart)
        more_members = share_of(members.middle, seen)
        more = share_of(rows.middle, m.sum("order_pairs", rows_of(*SPLITS)))
        fetching = self._with_mentions("fetch", None) * _FETCH_READS + Estimate.exactly(
            m.sum("fetch", seconds_of) * (1 - _FETCH_READS) * more
        )
        ranges = scale.units_seen("pair", grown.map(lambda n: float(n_ranges(round(n), rows_a_range=MEMBERS_A_RANGE))))
        splits = [share for share in (1 - group.validation_rate, group.validation_rate) if share]
        shards = scale.units_seen(
            "order_pairs",
            rows.map(lambda n: float(sum(n_ranges(int(n * share), rows_a_range=PAIRS_A_SHARD) for share in splits))),
        )
        scale.grow("group", "members", members.middle, min(units.middle, ranges.middle))
        lines = [
            scale.line(
                "group", units, self._with_mentions("group", counter_of("mentions")), members, "members", members_bytes
            ),
            scale.scaled("pair", ranges, more_members)._replace(rows=rows, what="pairs", bytes=sides_bytes),
            scale.line("fetch", units, fetching, rows * 2, "mentions", fetched_bytes),
            scale.scaled("order_pairs", shards, more)._replace(rows=rows, what="pairs", bytes=kept),
        ]
        return Forecast(build.output, lines, kept, members_bytes + sides_bytes + fetched_bytes)

    def _pairs(self, group: Group) -> Estimate:
        m = self._m
        times = share_of(1, m.sum("group", counter_of("mentions")))
        found = NOTHING
        for kind in group.rules.kinds:
            seen = m.sum("pair", counter_of(f"{kind}_pairs"))
            if group.rules.all_pairs:
                # From a corpus whose parts have nothing in common to one in which all grow alike.
                more = self._mentions * times
                found += Estimate(more.low * seen, more.middle**1.7 * seen, more.high**2 * seen)
                continue
            weights = pair_weights(mentions_per_key=group.rules.mentions_per_key, partners=group.rules.partners)
            keys = m.keys[kind]
            # What is left of the candidates once the same sentences, entities and other splits are gone.
            left = share_of(seen, keys.seen(weights))
            found += (keys.foretell(self._mentions, weights) * left).at_most(self._mentions * group.rules.partners)
        return found

    # ---- What they have in common

    def _in_units(self, keys: Keys, units: Estimate, weights: list[float]) -> Estimate:
        """The sum over units of what is foretold of the mentions of one."""
        n = max(units.middle, 1)
        return (keys.foretell(self._mentions * (1 / n), weights) * n).at_most(self._mentions)

    def _with_mentions(self, stage: str, seen: Callable[[Completion], float] | None) -> Estimate:
        """Seconds of a stage whose work is in proportion to the mentions that it reads."""
        m = self._m
        of = m.sum(stage, seen) if seen else m.sum("group", counter_of("mentions"))
        return self._mentions * share_of(m.sum(stage, seconds_of), of)


def _told(each: Completion) -> float:
    """Rows of the tables that a unit has read."""
    names = ("pages", "redirects")
    return sum(n for name, n in each.counters.items() if name in names or name.endswith("_rows"))


def _each_times(units: list[Completion], of: Callable[[Completion], float], times: list[float]) -> float:
    return sum(of(each) * more for each, more in zip(units, times, strict=True))
