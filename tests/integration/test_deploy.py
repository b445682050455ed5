"""deploy/: what units, recipes and the chart say is taken by the tools that will read it."""

from __future__ import annotations

import configparser
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from acktrail.cli import main
from acktrail.policy import read_policy
from acktrail.settings import load

ROOT = Path(__file__).parents[2]
UNITS = sorted((ROOT / "deploy/systemd").glob("*.service"))
RECIPES = sorted((ROOT / "deploy/containers").glob("*.Dockerfile"))
CHART = ROOT / "deploy/helm/acktrail"
TOOLS = ROOT / ".venv-deploy/bin"


def run(*words: Any) -> str:
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def help_of(*words: str) -> str:
    """What a command of ours says of its options."""
    told = CliRunner().invoke(main, [*words, "--help"])
    assert told.exit_code == 0, words
    return told.output


# -- systemd --------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", UNITS, ids=lambda u: u.stem)
def test_systemd_takes_the_unit(unit, tmp_path):
    """Its program stands at another place here."""
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text().replace("/opt/acktrail/bin/acktrail", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("unit", UNITS, ids=lambda u: u.stem)
def test_a_unit_is_hardened(unit):
    told = run("systemd-analyze", "security", "--offline=true", unit)
    (level,) = re.findall(r"Overall exposure level for \S+: ([\d.]+)", told)
    assert float(level) <= 1.7


@pytest.mark.parametrize("unit", UNITS, ids=lambda u: u.stem)
def test_a_unit_starts_again_what_may_help_and_nothing_else(unit):
    """Exit code 75 and a crash are failures that systemd starts again; 2 is not."""
    service = _service(unit)
    assert service["Restart"] == "on-failure"
    assert service["RestartPreventExitStatus"] == "2"
    _, *words = service["ExecStart"].split()
    assert all(option in help_of(words[0]) for option in words if option.startswith("--"))


def _service(unit: Path) -> dict[str, str]:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(unit)
    return dict(parser["Service"])


# -- containers -----------------------------------------------------------------------------------


def test_hadolint_finds_nothing_in_the_recipes():
    assert len(RECIPES) == 2
    assert run(TOOLS / "hadolint", *RECIPES) == ""


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda r: r.stem)
def test_a_recipe_copies_every_package_and_installs_extras_that_exist(recipe):
    text = recipe.read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = project["tool"]["setuptools"]["packages"]["find"]["include"]
    copied = re.findall(r"^COPY (\w+) \1$", text, re.MULTILINE)
    assert {name.rstrip("*") for name in packages} == set(copied)
    (extras,) = re.findall(r"'\.\[([\w,]+)\]'", text)
    assert set(extras.split(",")) <= set(project["project"]["optional-dependencies"])


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda r: r.stem)
def test_the_constraints_of_a_recipe_pin_every_package_that_tests_ran_with(recipe):
    (expression,) = re.findall(r"RUN (sed .*) requirements\.lock", recipe.read_text())
    done = subprocess.run(
        f"{expression} {ROOT}/requirements.lock", shell=True, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    lines = [ln for ln in done.stdout.splitlines() if ln and not ln.lstrip().startswith("#")]
    assert len(lines) > 50
    assert all(re.fullmatch(r"[\w.\[\]-]+==\S+( ; .+)?", line) for line in lines)


def test_the_agents_image_has_no_java_and_that_of_the_jobs_has_jars():
    agent, jobs = (path.read_text() for path in RECIPES)
    assert "openjdk" not in agent
    assert "openjdk-17" in jobs
    assert "pipelines.warm --archive" in jobs


# -- the chart ------------------------------------------------------------------------------------

ALL_OF_IT = (
    "cronJobs.run.enabled=true,cronJobs.check.enabled=true,lake.existingClaim=lake,"
    "existingSecret=secrets"
)
VALUES = [
    # values, the kinds that are made
    ("", {"ConfigMap", "ServiceAccount", "DaemonSet", "Deployment", "Service", "CronJob"}),
    (ALL_OF_IT, {"ConfigMap", "ServiceAccount", "DaemonSet", "Deployment", "Service", "CronJob"}),
    ("watch.enabled=false,cronJobs.upkeep.enabled=false,exporter.enabled=false",
     {"ConfigMap", "ServiceAccount", "DaemonSet"}),
    ("agent.enabled=false,watch.enabled=false,exporter.enabled=false,serviceAccount.create=false,"
     "cronJobs.run.enabled=true", {"ConfigMap", "CronJob"}),
]  # fmt: skip


def rendered(values: str) -> list[dict[str, Any]]:
    text = run(TOOLS / "helm", "template", "prod", CHART, *(["--set", values] if values else []))
    return [found for found in yaml.safe_load_all(text) if found]


def test_helm_finds_nothing_to_blame():
    run(TOOLS / "helm", "lint", "--strict", CHART)


@pytest.mark.parametrize(("values", "kinds"), VALUES)
def test_what_the_chart_makes_fits_the_schemas_of_kubernetes(values, kinds, tmp_path):
    made = rendered(values)
    assert {one["kind"] for one in made} == kinds
    file = tmp_path / "made.yaml"
    file.write_text(yaml.safe_dump_all(made))
    versions = ("1.31",) if values else ("1.31", "1.37")
    for version in versions:
        run(TOOLS / "kubernetes-validate", "--strict", "-k", version, file)


def test_a_wrong_object_is_found(tmp_path):
    """The test above can fail."""
    file = tmp_path / "wrong.yaml"
    file.write_text("apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {portz: []}\n")
    with pytest.raises(AssertionError):
        run(TOOLS / "kubernetes-validate", "--strict", "-k", "1.31", file)


WRONG = ["exporter.port=99999", "watch.enabled=maybe", "agent.mounts={var/log}", "no.such=1"]


@pytest.mark.parametrize("values", WRONG)
def test_wrong_values_are_refused(values):
    with pytest.raises(AssertionError, match="don't meet the specifications"):
        rendered(values)


def pods(made: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    found = {}
    for one in made:
        spec = one.get("spec", {})
        spec = spec.get("jobTemplate", {}).get("spec", spec)
        if "template" in spec:
            found[one["metadata"]["name"]] = spec["template"]["spec"]
    return found


def test_every_container_is_confined():
    found = pods(rendered(ALL_OF_IT))
    assert len(found) == 6
    for name, pod in found.items():
        assert pod["securityContext"]["runAsNonRoot"], name
        assert pod["automountServiceAccountToken"] is False
        (container,) = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        assert {"settings", "tmp", "lake"} <= mounted
        assert mounted == {volume["name"] for volume in pod["volumes"]}


def test_an_agent_has_the_name_of_its_node():
    """How far files were read is kept by host name: a pod's own would change."""
    found = pods(rendered(""))
    assert found["prod-acktrail-agent"]["hostNetwork"] is True
    assert "hostNetwork" not in found["prod-acktrail-watch"]


def test_only_the_agent_has_the_group_that_reads_the_logs():
    groups = {
        n: p["securityContext"].get("supplementalGroups") for n, p in pods(rendered("")).items()
    }
    assert groups.pop("prod-acktrail-agent") == [0]
    assert set(groups.values()) == {None}


def test_a_cron_job_tries_again_only_what_may_help():
    jobs = [one for one in rendered(ALL_OF_IT) if one["kind"] == "CronJob"]
    assert len(jobs) == 3
    for job in jobs:
        spec = job["spec"]["jobTemplate"]["spec"]
        (rule,) = spec["podFailurePolicy"]["rules"]
        assert rule["action"] == "FailJob"
        assert rule["onExitCodes"]["values"] == [1, 2]
        pod = spec["template"]["spec"]
        assert rule["onExitCodes"]["containerName"] == pod["containers"][0]["name"]


def test_every_command_of_the_chart_is_one_of_ours():
    for name, pod in pods(rendered(ALL_OF_IT)).items():
        (container,) = pod["containers"]
        if "args" in container:
            commands = [container["args"]]
        else:
            commands = [c.split()[1:] for c in container["command"][-1].split(" && ")]
        for words in commands:
            ours = []
            for word in words:
                if word.startswith("-"):
                    break
                ours.append(word)
            told = help_of(*ours)
            for option in re.findall(r"--[a-z]+", " ".join(words)):
                assert option in told, (name, option)


def test_the_settings_of_the_chart_are_read(tmp_path):
    """Also with sources of one's own, and a policy."""
    values = tmp_path / "values.yaml"
    values.write_text(
        "policy: |\n  window: 12h\nwatch:\n  sources: |\n    [[sources]]\n"
        '    kind = "cluster_state"\n    name = "state"\n'
        '\n    [kafka]\n    bootstrap_servers = "kafka-1:9092"\n'
    )
    text = run(TOOLS / "helm", "template", "prod", CHART, "--values", values)
    (config,) = (o for o in yaml.safe_load_all(text) if o and o["kind"] == "ConfigMap")
    for name, content in config["data"].items():
        (tmp_path / name).write_text(content)
    agent = load(tmp_path / "agent.toml", environment={}).settings
    watch = load(tmp_path / "acktrail.toml", environment={}).settings
    assert [s.kind for s in agent.sources] == ["log_files"]
    assert [s.kind for s in watch.sources] == ["cluster_state"]
    assert agent.cluster == watch.cluster == "prod"
    assert read_policy(tmp_path / "policy.yaml").window.total_seconds() == 12 * 3600
