"""Make the small HTML dump for the tests from a fragment of an XML dump.

    npm install --ignore-scripts parsoid@0.11.1
    python scripts/make_html_fixtures.py ../shared/data/corpora/wikipedia/enwiki-fragment.xml.bz2 node_modules/parsoid \
        tests/data/wikipedia-html/enwiki-NS0-20160501-ENTERPRISE-HTML.json.tar.gz

Parsoid, in its last JavaScript version, renders the pages without a network. What it would request from a wiki is
here: the few templates below, as live Wikipedia renders them (others are empty), pictures of one size, and which pages
are missing, redirects or disambiguation pages. Every second page is changed to the output of newer versions
(`_as_of_today`), so that both are read. (Two of its dependencies are named by repository;
`"overrides": {"content-type": "1.0.4", "negotiator": "0.6.3"}` in package.json takes them from npm.)
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import io
import json
import re
import subprocess
import tarfile
import tempfile
from collections import defaultdict
from pathlib import Path
from urllib.parse import quote

from lxml import etree

TITLES = (
    "Aardwolf|Abstract (law)|Actrius|Ada|Affirming the consequent|Alain Connes|Albedo|Alien|A Modest Proposal"
    "|An American in Paris|Animalia (book)|Answer|Appellate court|Arithmetic mean|Asia Minor (disambiguation)"
    "|Astronomer|Austin (disambiguation)|Demographics of Angola|International Atomic Time|List of anthropologists"
).split("|")
MISSING = {"Josep Maria Pou", "Ventura Pons", "Robert J. Shiller", "National Research Institute of Astronomy"}
PAGES_PER_MEMBER = 12

HATNOTE = '<div role="note" class="hatnote navigation-not-searchable">{}</div>'
DMBOX = (
    '<div role="note" class="metadata plainlinks dmbox dmbox-disambig" id="disambigbox"><div class="dmbox-text">This '
    "[[Help:Disambiguation|disambiguation]] page lists articles associated with the title "
    "'''{{{1|}}}'''.</div></div>"
)
CITE = '<cite class="citation web cs1">{{{last|}}} {{{first|}}} [{{{url|http://example.org}}} "{{{title|}}}"]. ' + (
    '[[{{{publisher|Publisher}}}]].</cite><span title="ctx_ver=Z39.88-2004" class="Z3988"></span>'
)
INFOBOX = (
    '<table class="infobox vevent"><tr><th colspan="2" class="infobox-above">{{{name|}}}</th></tr>'
    '<tr><th scope="row" class="infobox-label">Country</th><td class="infobox-data">{{{country|[[Spain]]}}}</td></tr>'
    "</table>"
)
NAVBOX = (
    '<div role="navigation" class="navbox" aria-labelledby="Topics"><table class="nowraplinks navbox-inner"><tr>'
    '<th scope="row" class="navbox-group">Topics</th><td class="navbox-list"><div><ul><li>[[Astronomy]]</li>'
    "<li>[[Physics]]</li></ul></div></td></tr></table></div>"
)
IPA = (
    '<span class="rt-commentedText nowrap"><span class="IPA nopopups noexcerpt" lang="en-fonipa">'
    "[[Help:IPA/English|/{{{1|}}}{{{2|}}}{{{3|}}}{{{4|}}}/]]</span></span>"
)
TEMPLATES = {
    "Convert": "{{{1|}}}&nbsp;{{{2|}}}",
    "Reflist": '<div class="reflist"><references/></div>',
    "Citation needed": '<sup class="noprint Inline-Template Template-Fact">&#91;<i>[[Wikipedia:Citation needed'
    "|<span>citation needed</span>]]</i>&#93;</sup>",
    "Lang": '<span title="text in another language"><i lang="{{{1}}}">{{{2}}}</i></span>',
    "Nowrap": '<span class="nowrap">{{{1}}}</span>',
    "Circa": '<abbr title="circa">c.</abbr>&nbsp;{{{1}}}',
    "Quote": '<blockquote class="templatequote"><p>{{{1|{{{text|}}}}}}</p><div class="templatequotecite">— '
    "<cite>{{{2|}}}</cite></div></blockquote>",
    "Coord": '<span class="geo-inline"><span class="plainlinks nourlexpansion"><span class="geo-dms">1°N 2°E</span>'
    "</span></span>",
    "Commons category": '<div role="navigation" class="side-box plainlinks sistersitebox">Wikimedia Commons has media '
    "related to [[:Category:{{{1|}}}]].</div>",
    "Unreferenced": '<table class="box-Unreferenced plainlinks metadata ambox" role="presentation"><tr><td>This '
    "article [[Wikipedia:Verifiability|does not cite any sources]].</td></tr></table>",
    **dict.fromkeys(("IPAc-en", "IPA-fr", "IPA-en"), IPA),
    **dict.fromkeys(("Cite web", "Cite book", "Cite journal", "Cite news", "Citation"), CITE),
    **dict.fromkeys(("Infobox film", "Infobox book", "Infobox occupation", "Infobox scientist"), INFOBOX),
    **dict.fromkeys(("Astronomy", "Astronomy navbox", "Ventura Pons", "Statistics", "George Gershwin"), NAVBOX),
    **dict.fromkeys(("Disambiguation", "Disambig", "Geodis", "Hndis"), DMBOX),
    **{
        name: HATNOTE.format(f"{says}: [[{{{{{{1|Page}}}}}}]]")
        for name, says in {"Main": "Main article", "See also": "See also", "Other uses": "For other uses, see"}.items()
    },
}

RENDER = """
const fs = require('fs'), path = process.argv[2] + '/';
require(path + 'core-upgrade.js');
const job = JSON.parse(fs.readFileSync(process.argv[3], 'utf8'));
require(path + 'lib/mw/Batcher.js').Batcher.getPageProps = (env, titles) => Promise.resolve([{
  batchResponse: Object.assign({}, titles.map((title) => Object.assign({title}, job.links[title]))),
}]);
const media = require(path + 'lib/wt2html/pp/processors/AddMediaInfo.js').AddMediaInfo;
media.requestInfo = (env, key) => Promise.resolve({err: null, info: {
  mediatype: 'BITMAP', mime: 'image/jpeg', width: 800, height: 600, thumbwidth: 220, thumbheight: 165,
  url: 'https://upload.wikimedia.org/' + key, thumburl: 'https://upload.wikimedia.org/220px-' + key,
}});
media.manualInfo = () => Promise.resolve({err: null});
require(path + 'lib/wt2html/tt/TemplateHandler.js').TemplateHandler.prototype._fetchTemplateAndTitle =
  (title, parent, done) => done(null, job.templates[title.replace(/_/g, ' ').replace(/^Template:/, '')] || '');
const parse = require(path + 'lib/parse.js');
(async () => {
  const out = [];
  for (const page of job.pages) {
    const result = await parse({
      input: page.wikitext, mode: 'wt2html',
      parsoidOptions: {fetchConfig: false, fetchTemplates: false, usePHPPreProcessor: false, expandExtensions: false,
                       loadWMF: true, useBatchAPI: true},
      envOptions: {prefix: 'enwiki', pageName: page.title, wrapSections: true, pageBundle: true, logLevels: ['fatal']},
    });
    out.push(result.html);
  }
  fs.writeFileSync(process.argv[4], JSON.stringify(out));
  process.exit(0);
})();
"""


def rendered(parsoid: Path, pages: list[dict[str, str]], links: dict[str, dict[str, object]]) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        script, job, out = (Path(folder, name) for name in ("render.js", "job.json", "out.json"))
        script.write_text(RENDER)
        job.write_text(json.dumps({"pages": pages, "links": links, "templates": TEMPLATES}))
        subprocess.run(["node", str(script), str(parsoid.resolve()), str(job), str(out)], check=True)
        found: list[str] = json.loads(out.read_text())
        return found


_FORMULA = re.compile(
    r"""<span typeof="mw:Error mw:Extension/math"( about="[^"]*") """
    r"""data-mw='[^']*"extsrc":"([^']*?)"\}\}'([^>]*)>.*?</span>""",
    re.DOTALL,
)


def _formula(match: re.Match[str]) -> str:
    tex = json.loads(f'"{match[2]}"')
    source = json.dumps({"name": "math", "attrs": {}, "body": {"extsrc": tex}}).replace("'", "&apos;")
    return (
        f'<span class="mwe-math-element" typeof="mw:Extension/math"{match[1]} data-mw=\'{source}\'{match[3]}><span '
        'class="mwe-math-mathml-inline mwe-math-mathml-a11y" style="display: none;"><math '
        f'xmlns="http://www.w3.org/1998/Math/MathML" alttext="{{\\displaystyle {tex}}}"><semantics><mi>{tex[:1]}</mi>'
        f'<annotation encoding="application/x-tex">{{\\displaystyle {tex}}}</annotation></semantics></math></span>'
        f'<img class="mwe-math-fallback-image-inline" aria-hidden="true" alt="{{\\displaystyle {tex}}}"/></span>'
    )


def _red(match: re.Match[str]) -> str:
    return match[0].replace(f'href="{match[1]}"', f'href="{match[1]}?action=edit&amp;redlink=1"')


def _as_of_today(html: str) -> str:
    """The HTML in the form of Parsoid since 2022."""
    html = html.replace("mw:Image", "mw:File").replace("figure-inline", "span")
    html = html.replace('class="mw-ref"', 'class="mw-ref reference"')
    html = re.sub(r"<h([2-6])( [^>]*)>(.*?)</h\1>", r'<div class="mw-heading mw-heading\1"><h\1\2>\3</h\1></div>', html)
    return re.sub(r'<a rel="mw:WikiLink" href="([^"]*)"[^>]* class="new"', _red, html)


def record(number: int, page: etree._Element, html: str, redirects: list[str]) -> dict[str, object]:
    """A page in the form of the dumps of 2024. Its Wikidata id is made up from its page id."""
    title, page_id, revision = page.findtext("{*}title"), page.findtext("{*}id"), page.find("{*}revision")
    url = "https://en.wikipedia.org/wiki/"
    wikitext = revision.findtext("{*}text")
    html = _FORMULA.sub(_formula, html)
    templates = sorted({name.strip() for name in re.findall(r"\{\{([\w -]+)(?=[|}])", wikitext)})
    return {
        "name": title,
        "identifier": int(page_id),
        "date_modified": revision.findtext("{*}timestamp"),
        "version": {"identifier": int(revision.findtext("{*}id")), "is_minor_edit": False},
        "url": url + quote(title.replace(" ", "_"), safe="()/,:'"),
        "namespace": {"identifier": 0, "name": ""},
        "in_language": {"identifier": "en", "name": "English"},
        "main_entity": {"identifier": f"Q{page_id}", "url": f"http://www.wikidata.org/entity/Q{page_id}"},
        "templates": [{"name": f"Template:{name}", "url": f"{url}Template:{quote(name)}"} for name in templates],
        "redirects": [{"name": name, "url": url + quote(name.replace(" ", "_"))} for name in redirects],
        "is_part_of": {"identifier": "enwiki", "name": "Wikipedia", "url": "https://en.wikipedia.org"},
        "article_body": {"html": _as_of_today(html) if number % 2 else html, "wikitext": wikitext},
        "license": [
            {
                "name": "Creative Commons Attribution-ShareAlike License 4.0",
                "identifier": "CC-BY-SA-4.0",
                "url": "https://creativecommons.org/licenses/by-sa/4.0/",
            }
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("fragment", type=Path)
    parser.add_argument("parsoid", type=Path)
    parser.add_argument("output", type=Path)
    options = parser.parse_args()
    root = etree.fromstring(bz2.decompress(options.fragment.read_bytes()))
    pages = {page.findtext("{*}title"): page for page in root.iterfind("{*}page")}
    redirects = defaultdict(list)
    links: dict[str, dict[str, object]] = {title: {"missing": True} for title in MISSING}
    for title, page in pages.items():
        if page.find("{*}redirect") is not None:
            redirects[page.find("{*}redirect").get("title")].append(title)
            links[title] = {"redirect": True}
        elif title.endswith("(disambiguation)"):
            links[title] = {"pageprops": {"disambiguation": ""}}
    chosen = [pages[title] for title in TITLES]
    wikitext = [
        {"title": page.findtext("{*}title"), "wikitext": page.findtext("{*}revision/{*}text")} for page in chosen
    ]
    html = rendered(options.parsoid, wikitext, links)
    lines = [
        json.dumps(record(number, page, each, redirects[page.findtext("{*}title")]), ensure_ascii=False) + "\n"
        for number, (page, each) in enumerate(zip(chosen, html, strict=True))
    ]
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for number, start in enumerate(range(0, len(lines), PAGES_PER_MEMBER)):
            data = "".join(lines[start : start + PAGES_PER_MEMBER]).encode()
            member = tarfile.TarInfo(f"enwiki_namespace_0_{number}.ndjson")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    options.output.write_bytes(gzip.compress(out.getvalue(), 9, mtime=0))


if __name__ == "__main__":
    main()
