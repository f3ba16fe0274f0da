"""The job that would be submitted: what a runner must support, what crosses shuffles, what Dataflow is asked for."""

from __future__ import annotations

import base64
import bz2
from collections.abc import Iterator
from typing import Any

import pytest
from literal import parse_options

from pipelines import corpus, mine_contexts
from pipelines.engine import preflight
from pipelines.engine.dataset_build import DatasetBuild
from pipelines.engine.driver import stage_runs
from pipelines.engine.preflight import Submission
from schemas.errors import UserError
from schemas.storage.folder import Folder

IMAGE = "europe-docker.pkg.dev/p/phrasemill/phrasemill-worker:0.1.0"
SENTENCE = "The quick brown fox jumps over the lazy dog."

PRIMITIVES = {
    "beam:transform:impulse:v1",
    "beam:transform:pardo:v1",
    "beam:transform:group_by_key:v1",
}
"""What every portable runner does itself or lets the SDK do (Beam's portability protocol)."""

STANDARD_CODERS = {
    "beam:coder:bytes:v1",
    "beam:coder:global_window:v1",
    "beam:coder:iterable:v1",
    "beam:coder:kv:v1",
    "beam:coder:string_utf8:v1",
    "beam:coder:varint:v1",
}
"""The protocol's coders that may be used here; all SDKs and runners support them."""


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    """Imports that take seconds, done when a test here runs and not when tests are collected."""
    global beam, GoogleCloudOptions, PortableOptions, beam_runner_api_pb2, Environment, BeamExecutor
    import apache_beam as beam
    from apache_beam.options.pipeline_options import GoogleCloudOptions, PortableOptions
    from apache_beam.portability.api import beam_runner_api_pb2
    from apache_beam.transforms.environments import Environment

    from pipelines.engine.beam import BeamExecutor


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> list[DatasetBuild]:
    """The main job's options, on a text whose sentences are all known."""
    text = tmp_path_factory.mktemp("books") / "book.txt"
    text.write_text(f"{SENTENCE}\n\n" * 200)
    options = parse_options("--shard-bytes", "2000")
    chain = mine_contexts.build(corpus.given([str(text)], input_format=None), options, Folder("gs://corpora/mix"))
    return corpus.to_build(chain)


@pytest.fixture(scope="module")
def sent(builds: list[DatasetBuild]) -> beam_runner_api_pb2.Pipeline:
    """The job in the form that a portable runner gets."""
    return proto(builds, EXTERNAL)


EXTERNAL = Submission("PortableRunner", ["--environment_type=EXTERNAL", "--environment_config=10.0.0.0:50000"])


def submitted(builds: list[DatasetBuild], submission: Submission) -> beam.Pipeline:
    executor = BeamExecutor(submission)
    for stage in stage_runs(builds, run="", max_reject_rate=0.01):
        executor.run(stage)
    return executor.pipeline()


def proto(builds: list[DatasetBuild], submission: Submission) -> beam_runner_api_pb2.Pipeline:
    pipeline = submitted(builds, submission)
    environment = Environment.from_options(pipeline._options.view_as(PortableOptions))
    return pipeline.to_runner_api(default_environment=environment)


def leaves(pipeline: beam_runner_api_pb2.Pipeline) -> Iterator[Any]:
    for transform in pipeline.components.transforms.values():
        if not transform.subtransforms and transform.spec.urn:
            yield transform


def coder_urns(pipeline: beam_runner_api_pb2.Pipeline, coder_id: str) -> Iterator[str]:
    coder = pipeline.components.coders[coder_id]
    yield coder.spec.urn
    for component in coder.component_coder_ids:
        yield from coder_urns(pipeline, component)


def test_only_primitives_that_all_runners_know(sent: beam_runner_api_pb2.Pipeline) -> None:
    assert {transform.spec.urn for transform in leaves(sent)} == PRIMITIVES


def test_shuffles_carry_strings_and_numbers_in_standard_coders(
    builds: list[DatasetBuild], sent: beam_runner_api_pb2.Pipeline
) -> None:
    shuffled = []
    for transform in leaves(sent):
        if transform.spec.urn == "beam:transform:group_by_key:v1":
            (collection,) = transform.inputs.values()
            coder = sent.components.pcollections[collection].coder_id
            shuffled.append(list(coder_urns(sent, coder)))
    stages = sum(len(build.stages) for build in builds)
    assert shuffled == [["beam:coder:kv:v1", "beam:coder:string_utf8:v1", "beam:coder:varint:v1"]] * stages * 2


def test_all_coders_are_standard(sent: beam_runner_api_pb2.Pipeline) -> None:
    collections = sent.components.pcollections.values()
    assert {urn for each in collections for urn in coder_urns(sent, each.coder_id)} <= STANDARD_CODERS


def test_functions_travel_by_name_and_nothing_by_side(sent: beam_runner_api_pb2.Pipeline) -> None:
    """No bytecode, which another Python could not read; no side inputs; no text of the corpus."""
    for transform in leaves(sent):
        if transform.spec.urn == "beam:transform:pardo:v1":
            payload = beam_runner_api_pb2.ParDoPayload.FromString(transform.spec.payload)
            assert not payload.side_inputs
            function = bz2.decompress(base64.b64decode(payload.do_fn.payload))
            assert b"pipelines.engine.beam" in function
            assert b"_make_function" not in function  # how cloudpickle rebuilds one from its code
            assert SENTENCE.encode()[:20] not in function


def test_a_job_is_small(sent: beam_runner_api_pb2.Pipeline) -> None:
    assert len(sent.SerializeToString()) < 100_000


def test_nothing_is_staged_for_workers(builds: list[DatasetBuild]) -> None:
    """The image has everything. Nothing of the submitting machine's installation or main module is sent."""
    prepared = preflight.prepare("PortableRunner", ["--job_endpoint=embed"], ["/tmp/mix"])
    for environment in proto(builds, prepared).components.environments.values():
        assert not environment.dependencies


def dataflow_job(builds: list[DatasetBuild], *more: str) -> Any:
    """The job that would be sent to Dataflow. It is not sent."""
    pytest.importorskip("google.cloud.dataflow", reason="needs the extra gcp")
    arguments = ["--project=phrasemill-test", "--region=europe-west4", "--temp_location=gs://corpora/tmp"]
    arguments += [f"--sdk_container_image={IMAGE}", "--max_num_workers=40", "--job_name=wiki", *more]
    prepared = preflight.prepare("DataflowRunner", arguments, ["gs://corpora/mix"])
    dry = prepared._replace(arguments=[*prepared.arguments, "--dry_run=True", "--no_auth"])
    return submitted(builds, dry).run().job


def test_what_dataflow_is_asked_for(builds: list[DatasetBuild]) -> None:
    job = dataflow_job(builds)
    from apache_beam.runners.dataflow.internal import apiclient

    asked = apiclient.Environment([], job.options, "8", "gs://corpora/pipeline.pb", job.proto_pipeline).proto
    (pool,) = asked.worker_pools
    assert (pool.machine_type, pool.disk_size_gb) == ("n2-standard-8", 50)
    assert pool.autoscaling_settings.max_num_workers == 40
    assert [image.container_image for image in pool.sdk_harness_container_images] == [IMAGE]
    assert {"use_runner_v2", "no_use_multiple_sdk_containers"} <= set(asked.experiments)
    assert not pool.packages
    assert (job.proto.name, job.options.view_as(GoogleCloudOptions).region) == ("wiki", "europe-west4")


def test_what_crosses_the_shuffles_of_a_dataflow_job(builds: list[DatasetBuild]) -> None:
    pipeline = dataflow_job(builds).proto_pipeline
    assert {transform.spec.urn for transform in leaves(pipeline)} <= PRIMITIVES
    for transform in leaves(pipeline):
        if transform.spec.urn == "beam:transform:group_by_key:v1":
            (collection,) = transform.inputs.values()
            urns = list(coder_urns(pipeline, pipeline.components.pcollections[collection].coder_id))
            assert urns == ["beam:coder:kv:v1", "beam:coder:string_utf8:v1", "beam:coder:varint:v1"]
        if transform.spec.urn == "beam:transform:pardo:v1":
            assert not beam_runner_api_pb2.ParDoPayload.FromString(transform.spec.payload).side_inputs
    for environment in pipeline.components.environments.values():
        assert beam_runner_api_pb2.DockerPayload.FromString(environment.payload).container_image == IMAGE
        assert not environment.dependencies


def test_what_beam_finds_wrong_with_options_is_one_line(builds: list[DatasetBuild]) -> None:
    with pytest.raises(UserError, match=r"^--runner=DataflowRunner: Invalid Project ID \(p\)"):
        dataflow_job(builds, "--project=p")
