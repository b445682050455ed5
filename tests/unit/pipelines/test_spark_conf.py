"""Which settings of Spark come of ours, case by case; no JVM is started."""

from __future__ import annotations

import os

import pytest

from acktrail.errors import ConfigError
from acktrail.lake.s3_options import S3Options
from acktrail.lake.store import Store
from acktrail.settings.spark import FIXED, SparkSettings
from pipelines import session
from pipelines.spark_conf import DriverHost, SessionPlan, refuse_private_lake, render

HOST = DriverHost("/env/bin/python", ("/a.jar", "/b.jar"), "-Dlog=x", "-XX:archive", "/warehouse")
STANDALONE, YARN, K8S = "spark://m:7077", "yarn", "k8s://https://k:6443"
REMOTE = (STANDALONE, "spark://m1:7077,m2:7077", YARN, K8S)
ONE_JVM = ("local", "local[*]", "local[2]", "local[2,3]")
LOCAL_CLUSTER = "local-cluster[2,1,1024]"
LAPTOP = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
QUICK_JAVA = ("TieredStopAtLevel=1", "UseSerialGC", "-XX:archive")


def plan(master: str = "local[*]", **given: object) -> SessionPlan:
    return render(SparkSettings.model_validate({"master": master, **given}), HOST)


@pytest.mark.parametrize("master", [*ONE_JVM, LOCAL_CLUSTER, *REMOTE])
def test_what_tables_depend_on_is_the_same_everywhere(master):
    made = plan(master)
    assert FIXED.items() <= made.conf.items()
    assert made.conf["spark.jars"] == "/a.jar,/b.jar"
    assert made.conf["spark.driver.extraJavaOptions"].startswith("-Dlog=x -Xlog:disable")


@pytest.mark.parametrize("master", ONE_JVM)
def test_a_local_master_is_tuned_for_a_small_machine(master):
    made = plan(master)
    assert LAPTOP.items() <= made.conf.items()
    assert all(o in made.conf["spark.driver.extraJavaOptions"] for o in QUICK_JAVA)
    assert made.conf["spark.driver.host"] == "127.0.0.1"
    assert made.environment["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert made.environment["PYSPARK_PYTHON"] == "/env/bin/python"


def test_a_long_job_on_a_local_master_gets_compiled_plans_and_the_full_compiler():
    made = render(SparkSettings(), HOST, long_job=True)
    assert "spark.sql.codegen.wholeStage" not in made.conf
    assert "UseParallelGC" in made.conf["spark.driver.extraJavaOptions"]
    assert made.conf["spark.sql.shuffle.partitions"] == "2"
    assert (made.conf["spark.driver.memory"], plan().conf["spark.driver.memory"]) == ("4g", "2g")


@pytest.mark.parametrize("master", REMOTE)
def test_a_cluster_gets_nothing_that_is_for_a_small_machine(master):
    made = plan(master)
    assert not LAPTOP.keys() & made.conf.keys()
    assert not any(option in made.conf["spark.driver.extraJavaOptions"] for option in QUICK_JAVA)
    assert "spark.driver.host" not in made.conf
    assert "SPARK_LOCAL_IP" not in {**made.environment, **made.forced}


def test_a_local_cluster_is_on_loopback_and_has_executors_of_its_own():
    made = plan(LOCAL_CLUSTER, executor_memory="512m", environment="/env.tar.gz", driver_host="h")
    assert not LAPTOP.keys() & made.conf.keys()
    assert made.conf["spark.driver.host"] == "127.0.0.1"
    assert made.conf["spark.executor.memory"] == "512m"
    assert "spark.archives" not in made.conf
    assert made.forced == {}


CLUSTER = {
    "driver_host": "10.0.0.5",
    "driver_bind_address": "0.0.0.0",
    "driver_port": 7078,
    "block_manager_port": 7079,
    "executors": 3,
    "executor_cores": 2,
    "executor_memory": "4g",
    "driver_memory": "1g",
    "environment": "/srv/env.tar.gz",
}
RENDERED = {
    "spark.driver.host": "10.0.0.5",
    "spark.driver.bindAddress": "0.0.0.0",
    "spark.driver.port": "7078",
    "spark.driver.blockManager.port": "7079",
    "spark.executor.instances": "3",
    "spark.executor.cores": "2",
    "spark.executor.memory": "4g",
    "spark.driver.memory": "1g",
    "spark.archives": "/srv/env.tar.gz#environment",
}


@pytest.mark.parametrize("master", REMOTE)
def test_every_setting_has_its_name_of_spark(master):
    made = plan(master, **CLUSTER)
    assert RENDERED.items() <= made.conf.items()
    assert made.forced == {"PYSPARK_PYTHON": "./environment/bin/python"}
    standalone = master.startswith("spark://")
    assert made.conf.get("spark.cores.max") == ("6" if standalone else None)


def test_settings_of_a_cluster_are_left_out_with_a_local_master():
    """So that `--master local[2]` works with the settings of a cluster."""
    assert plan(**{**CLUSTER, "driver_memory": "2g"}) == plan()


def test_a_standalone_master_counts_cores_and_not_executors():
    with pytest.raises(ConfigError, match="executor_cores` is not"):
        plan(STANDALONE, executors=3)
    assert plan(YARN, executors=3).conf["spark.executor.instances"] == "3"


CONF = [
    # what, the key, what a user gives, what comes of it
    ("a default of ours", "spark.ui.enabled", "true", "true"),
    ("one that is not ours", "spark.speculation", "true", "true"),
    ("a tuning", "spark.sql.shuffle.partitions", "64", "64"),
    ("an address", "spark.driver.host", "h", "h"),
    ("jars", "spark.jars", "/mine.jar", "/a.jar,/b.jar,/mine.jar"),
    ("extensions", "spark.sql.extensions", "x.Y", "io.delta.sql.DeltaSparkSessionExtension,x.Y"),
    ("an archive", "spark.archives", "/more.zip", "/env.tgz#environment,/more.zip"),
]


@pytest.mark.parametrize(("key", "value", "made"), [c[1:] for c in CONF], ids=[c[0] for c in CONF])
def test_what_a_user_gives_wins_or_is_added(key, value, made):
    assert plan(YARN, environment="/env.tgz", conf={key: value}).conf[key] == made


def test_java_options_of_a_user_come_last_so_that_they_win():
    made = plan(conf={"spark.driver.extraJavaOptions": "-XX:+UseG1GC"})
    assert made.conf["spark.driver.extraJavaOptions"].endswith(" -XX:+UseG1GC")


def test_one_thing_set_twice_is_refused():
    with pytest.raises(ConfigError, match=r'"spark.executor.memory"` is 1g.* makes it 4g'):
        plan(YARN, executor_memory="4g", conf={"spark.executor.memory": "1g"})


S3 = S3Options("AKIA1", "hunter2", "hunter3", "eu-1", "http://127.0.0.1:9000")


@pytest.mark.parametrize("master", ["local[2]", LOCAL_CLUSTER, *REMOTE])
def test_a_lake_on_s3_is_read_by_s3a_under_both_names(master):
    made = render(SparkSettings(master=master), HOST, S3)
    for key in ("spark.hadoop.fs.s3.impl", "spark.hadoop.fs.s3a.impl"):
        assert made.conf[key] == "org.apache.hadoop.fs.s3a.S3AFileSystem"
    assert made.conf["spark.hadoop.fs.s3a.endpoint"] == "http://127.0.0.1:9000"
    assert not any("s3" in key for key in plan(master).conf)


@pytest.mark.parametrize("master", ["local[2]", LOCAL_CLUSTER, *REMOTE])
def test_secrets_of_the_store_are_in_environments_and_not_on_the_command_line(master):
    made = render(SparkSettings(master=master), HOST, S3)
    assert not [key for key, value in made.conf.items() if "hunter" in value or "AKIA" in value]
    assert "hunter" not in repr(made)
    assert made.forced["AWS_SECRET_ACCESS_KEY"] == "hunter2", "for the driver's JVM"
    remote = master in REMOTE
    assert made.private_conf == ({
        "spark.executorEnv.AWS_ACCESS_KEY_ID": "AKIA1",
        "spark.executorEnv.AWS_SECRET_ACCESS_KEY": "hunter2",
        "spark.executorEnv.AWS_SESSION_TOKEN": "hunter3",
    } if remote else {})  # fmt: skip
    assert made.conf.get("spark.executorEnv.AWS_REGION") == ("eu-1" if remote else None)


def test_without_keys_executors_have_credentials_of_their_own():
    made = render(SparkSettings(master=YARN), HOST, S3Options(region="eu-1"))
    assert made.private_conf == made.forced == {}


LAKES = [
    # master, shared_lake, lake, refused
    (STANDALONE, False, "/srv/lake", True),
    (STANDALONE, False, "./lake", True),
    (STANDALONE, False, "file:///srv/lake", True),
    ("spark://127.0.0.1:7077", False, "/srv/lake", True),
    (YARN, False, "/srv/lake", True),
    (K8S, False, "/srv/lake", True),
    (STANDALONE, True, "/srv/lake", False),
    (STANDALONE, False, "s3://bucket/lake", False),
    (LOCAL_CLUSTER, False, "/srv/lake", False),
    ("local[2]", False, "/srv/lake", False),
]


@pytest.mark.parametrize(("master", "shared", "uri", "refused"), LAKES)
def test_a_directory_that_executors_do_not_see_is_refused(master, shared, uri, refused):
    settings = SparkSettings(master=master, shared_lake=shared)
    if not refused:
        refuse_private_lake(settings, Store(uri))
        return
    with pytest.raises(ConfigError, match="each would write to its own disk") as raised:
        session.build(settings, Store(uri))
    assert "`spark.shared_lake = true`" in str(raised.value)


def test_an_archive_that_does_not_exist_is_refused_before_a_jvm_starts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=f"acktrail pack {tmp_path}/env.tar.gz"):
        session.build(SparkSettings(master=YARN, environment="env.tar.gz"))


def test_the_environment_of_the_process_is_as_before(monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", "/mine")
    monkeypatch.setenv("SPARK_LOCAL_IP", "10.0.0.9")
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    before = dict(os.environ)
    with session._environment(plan()):
        assert os.environ["PYSPARK_PYTHON"] == "/mine", "what the user has set stays"
        assert os.environ["SPARK_LOCAL_IP"] == "10.0.0.9"
        assert os.environ["MALLOC_ARENA_MAX"] == "2"
    with session._environment(plan(YARN, environment="/env.tgz")):
        assert os.environ["PYSPARK_PYTHON"] == "./environment/bin/python"
    assert dict(os.environ) == before
