"""The tools that show datasets print the same on object stores as on a disk."""

from __future__ import annotations

from pathlib import Path

from literal import run_inline
from stores import Store
from toy import poisoned_words

from pipelines import rejects, report
from pipelines.engine.stage import open_stage
from pipelines.engine.task_writer import do_unit
from schemas.storage.folder import Folder

TEXTS = ("a b BAD c", "BAD d", "e")


def test_report_and_rejects_of_a_finished_dataset(store: Store, tmp_path: Path, capsys) -> None:
    folders = [Folder(str(tmp_path / "toy")), store.folder("toy")]
    run_inline(poisoned_words(Path(folders[0].uri), TEXTS))
    for name in folders[0].files(recursive=True):
        folders[1].write(name, folders[0].read(name))
    tables = []
    for folder in folders:
        assert report.main([folder.uri]) == 0
        capsys.readouterr()
        assert rejects.main([folder.uri]) == 0
        tables.append(capsys.readouterr().out.splitlines()[1:])
    pages = [folder.read("report.html").decode().partition('id="load"') for folder in folders]
    assert pages[0][0] == pages[1][0]
    assert f"dataset(&#34;{(folders[1] / 'data').uri}&#34;).to_table()".replace("&amp;", "&") in pages[1][2].replace(
        "&amp;", "&"
    )
    assert tables[0] == tables[1]
    assert any(line.startswith("words  bad_record      2  28.6 %  a line, row or file") for line in tables[0])


def test_rejects_of_an_unfinished_run(store: Store, capsys) -> None:
    build = poisoned_words(store.address("unfinished"), TEXTS)  # type: ignore[arg-type]
    build.begin(resume=False)
    (stage,) = build.stages
    for unit in open_stage(build.work, stage)[:1]:
        do_unit(build.work, stage, unit)
    assert rejects.main([store.address("unfinished")]) == 0
    assert "words  bad_record      1  25.0 %" in capsys.readouterr().out
