"""Settings: weighed, refused when unknown, silent about secrets, and clear when missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from acktrail.errors import ConfigError
from acktrail.settings import load


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "acktrail.toml"
    path.write_text(text)
    return path


def test_given_weighs_more_than_environment_more_than_file(tmp_path: Path) -> None:
    path = written(tmp_path, 'cluster = "file"\n[lake]\nuri = "file"\n')
    env = {"ACKTRAIL_CLUSTER": "env", "ACKTRAIL_LAKE__URI": "env"}
    loaded = load(path, ["cluster=given"], env)
    assert (loaded.settings.cluster, loaded.settings.lake.uri) == ("given", "env")
    assert load(path, [], {}).settings.cluster == "file"


WRONG = [
    ("an unknown key", "colour = 1", "colour: there is no such setting"),
    ("an unknown key in a section", "[lake]\nurl = 'x'", "lake.url: there is no such setting"),
    ("not TOML", "cluster = ", "is not valid TOML"),
    ("a wrong type", "[agent]\nflush_s = 'often'", "agent.flush_s"),
    ("an alias that cannot be matched", "[[aliases]]\nfield = 'host'\nmatch = '('\nhost = 'a'",
     "aliases.0: `match` is not a regular expression: missing )"),
    ("an alias that uses no group", "[[aliases]]\nfield = 'host'\nmatch = 'a'\nhost = '\\9'",
     "aliases.0: `host` cannot be made from `match`: invalid group reference 9"),
    ("an alias that names no group",
     "[[aliases]]\nfield = 'host'\nmatch = 'a'\nclient_id = '\\g<id>'",
     "aliases.0: `client_id` cannot be made from `match`: unknown group name 'id'"),
    ("an alias that names nothing", "[[aliases]]\nfield = 'host'\nmatch = 'a'",
     "aliases.0: the rule names nothing"),
    ("a broker that is no number",
     "[[aliases]]\nfield = 'host'\nmatch = 'a'\nbroker = 'two'", "`broker` is a number"),
    ("a source of no known kind", "[[sources]]\nname = 'x'\nkind = 'fax'", "sources.0"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), [c[1:] for c in WRONG], ids=[c[0] for c in WRONG])
def test_wrong_settings_say_where(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load(written(tmp_path, text), [], {})
    assert said in str(raised.value)


def test_a_missing_setting_lists_the_places_tried(tmp_path: Path) -> None:
    path = written(tmp_path, "[kafka]\n")
    with pytest.raises(ConfigError) as raised:
        load(path, [], {}).require("kafka.bootstrap_servers")
    said = str(raised.value)
    assert "--set kafka.bootstrap_servers=...   not given" in said
    assert "ACKTRAIL_KAFKA__BOOTSTRAP_SERVERS   not set" in said
    assert f"{path}   read; it has no bootstrap_servers under [kafka]" in said


def test_secrets_are_never_printed(tmp_path: Path) -> None:
    text = '[kafka.secrets]\n"sasl.password" = "hunter2"\n[lake.storage_options]\nKEY = "hunter2"\n'
    loaded = load(written(tmp_path, text), [], {})
    assert "hunter2" not in repr(loaded.settings)
    assert loaded.settings.kafka.secrets["sasl.password"].get_secret_value() == "hunter2"


def test_a_wrong_value_is_not_repeated_since_it_may_be_a_secret(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        load(written(tmp_path, '[kafka]\nsecrets = "hunter2"\n'), [], {})
    assert "hunter2" not in str(raised.value)


def test_a_named_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        load(tmp_path / "nowhere.toml", [], {})


def test_an_alias_may_name_a_broker(tmp_path: Path) -> None:
    text = """
[[aliases]]
field = 'instance'
match = '^10\\.0\\.0\\.(\\d+):'
broker = '\\1'
[[aliases]]
field = 'instance'
match = '^kafka-a'
broker = 7
"""
    rules = load(written(tmp_path, text), [], {}).settings.aliases
    assert [rule.broker for rule in rules] == [r"\1", "7"]
