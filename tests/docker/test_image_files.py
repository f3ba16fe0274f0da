"""What the image and the cluster of docker/ are made of agrees with the project, and with itself."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from string import Template
from typing import Any

import pytest
import yaml
from images import versions
from requirements import requirements, split_extras, tomllib

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "docker/Dockerfile").read_text(encoding="utf-8")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
VERSIONS = versions()
SETTINGS = dict(
    line.split("=", 1)
    for line in (ROOT / "docker/.env").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
)
COMPOSE_TEXT = Template((ROOT / "docker/compose.yaml").read_text(encoding="utf-8")).substitute(SETTINGS)
COMPOSE = yaml.safe_load(COMPOSE_TEXT)
SERVICES: dict[str, Any] = COMPOSE["services"]

# ---- Requirements


def test_requirements_with_extras() -> None:
    project = {
        "name": "mill",
        "dependencies": ["a>=1", "b[x]==2"],
        "optional-dependencies": {"one": ["c"], "two": ["c", "d<3"], "all": ["mill[one,two]"]},
    }
    assert requirements(project, []) == ["a>=1", "b[x]==2"]
    assert requirements(project, ["two", "one"]) == ["a>=1", "b[x]==2", "c", "d<3"]
    assert requirements(project, ["all"]) == ["a>=1", "b[x]==2", "c", "d<3"]
    with pytest.raises(KeyError, match="three"):
        requirements(project, ["three"])


def test_extras_are_split() -> None:
    assert split_extras("") == []
    assert split_extras(" gcp, benepar,,gcp") == ["benepar", "gcp"]


# ---- The Dockerfile


def test_defaults_of_the_dockerfile_are_those_of_the_project() -> None:
    assert dict(re.findall(r"^ARG (\w+)=(.*)$", DOCKERFILE, re.MULTILINE)) == {
        "BASE": f"python:{VERSIONS.python}-slim-bookworm",
        "BOOT": f"apache/beam_python{VERSIONS.python}_sdk:{VERSIONS.beam}",
        "VERSION": VERSIONS.phrasemill,
        "PYTHON": VERSIONS.python,
        "BEAM": VERSIONS.beam,
        "EXTRAS": "",
        "RUN_AS": "10001",
    }


def test_guide_names_the_versions_of_the_project() -> None:
    guide = (ROOT / "docker/README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"phrasemill-worker:([\d.]+)-py([\d.]+)-beam(\d+\.\d+\.\d+)", guide))
    assert named == {(VERSIONS.phrasemill, VERSIONS.python, VERSIONS.beam)}


def test_dockerfile_is_built_of_what_it_is_given() -> None:
    """Every argument is used, and images come from arguments or stages only."""
    for name in re.findall(r"^ARG (\w+)", DOCKERFILE, re.MULTILINE):
        assert f"${{{name}}}" in DOCKERFILE, name
    stages = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert stages == ["${BOOT}", "${BASE}", "${BASE}"]
    assert not re.search(r"apt-get|curl |wget |:latest", DOCKERFILE)


def test_all_packages_go_to_the_builder() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    packages = {name.rstrip("*") for name in PYPROJECT["tool"]["setuptools"]["packages"]["find"]["include"]}
    needed = packages | {"pyproject.toml", "constraints.txt", "LICENSE", "README.md", "docker/requirements.py"}
    assert "*" in ignored
    assert {line[1:] for line in ignored if line.startswith("!")} == needed


# ---- The cluster


def test_cluster_has_the_versions_of_the_project() -> None:
    from apache_beam.options.pipeline_options import FlinkRunnerOptions

    assert SETTINGS["WORKER_IMAGE"] == "phrasemill-worker:{0}-py{2}-beam{1}".format(*VERSIONS)
    assert SETTINGS["BEAM_VERSION"] == VERSIONS.beam
    # The default of Beam's --flink_version.
    assert SETTINGS["FLINK_SERIES"] == FlinkRunnerOptions.PUBLISHED_FLINK_VERSIONS[-1]
    assert SETTINGS["FLINK_VERSION"].startswith(SETTINGS["FLINK_SERIES"] + ".")
    assert SERVICES["jobserver"]["image"] == f"apache/beam_flink_job_server:{VERSIONS.beam}-flink2.2"


def test_store_is_the_one_of_the_tests() -> None:
    tested = re.search(r'versitygw", "(v[\d.]+)"', (ROOT / "tests/storage/stores.py").read_text(encoding="utf-8"))
    assert tested
    assert SETTINGS["VERSITYGW_VERSION"] == tested[1]


def test_every_setting_is_used_and_every_image_pinned() -> None:
    text = (ROOT / "docker/compose.yaml").read_text(encoding="utf-8")
    assert set(re.findall(r"\$\{(\w+)\}", text)) == set(SETTINGS)
    for name, service in SERVICES.items():
        assert re.fullmatch(r"[\w/-]+:v?\d+\.\d+\.\d+[\w.-]*", service["image"]), name


def test_nothing_is_open_beyond_this_machine() -> None:
    for service in SERVICES.values():
        for port in service.get("ports", ()):
            assert re.fullmatch(r"127\.0\.0\.1:(\d+):\1", port)


def test_each_task_manager_has_a_pool_in_its_network() -> None:
    managers = {name for name, service in SERVICES.items() if service.get("command") == "taskmanager"}
    pools = {name: service for name, service in SERVICES.items() if service.get("command") == ["-worker_pool"]}
    assert {service["network_mode"] for service in pools.values()} == {f"service:{name}" for name in managers}
    assert all(not service.get("ports") for service in pools.values())
    slots = len(managers) * int(SETTINGS["TASK_SLOTS"])
    assert int(SETTINGS["PARALLELISM"]) == slots
    assert set(pools) < set(SERVICES["mine"]["depends_on"])


def test_ports_are_those_that_others_call() -> None:
    submit = SERVICES["mine"]["entrypoint"]
    jobserver = SERVICES["jobserver"]["command"]
    assert "--job_endpoint=jobserver:8099" in submit
    assert {"--job-host=jobserver", "--job-port=8099", "--flink-master=jobmanager:8081"} < set(jobserver)
    # boot's own port, which cannot be chosen.
    assert "--environment_config=localhost:50000" in submit
    assert "50000" in SERVICES["workers-1"]["healthcheck"]["test"][-1]
    assert SERVICES["workers-1"]["environment"]["AWS_ENDPOINT_URL"] == "http://s3:7070"


def test_what_is_staged_lies_where_both_see_it() -> None:
    assert "--artifacts-dir=/artifacts" in SERVICES["jobserver"]["command"]
    assert "artifacts:/artifacts" in SERVICES["jobserver"]["volumes"]
    assert "artifacts:/artifacts:ro" in SERVICES["taskmanager-1"]["volumes"]


def test_what_others_wait_for_has_a_health_check() -> None:
    for name, service in SERVICES.items():
        for other, wanted in service.get("depends_on", {}).items():
            assert other in SERVICES, (name, other)
            if wanted["condition"] == "service_healthy":
                assert SERVICES[other]["healthcheck"]["test"][0] == "CMD", (name, other)


@pytest.mark.heavy
def test_compose_specification(tmp_path: Path) -> None:
    """By the parser that docker compose itself has."""
    from servers import go_install

    program = go_install("github.com/compose-spec/compose-go/v2/cmd", "v2.16.2")
    (tmp_path / "compose.yaml").write_text(COMPOSE_TEXT)
    parsed = subprocess.run([program, tmp_path / "compose.yaml"], capture_output=True, text=True, timeout=60)
    assert (parsed.returncode, parsed.stderr) == (0, "")
    assert set(yaml.safe_load(parsed.stdout)["services"]) >= {*SERVICES} - {"mine"}
