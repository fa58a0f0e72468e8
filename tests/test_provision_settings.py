"""pip's and Maven's own settings are obeyed, and shown without their secrets."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest
import requests
from provision_registry import Registry, archive, registry, write_lock

from lab.errors import LabError
from lab.provision import Cache, Lock, maven_settings, pip_settings
from lab.provision.redact import redacted
from lab.provision.settings import Settings
from lab.provision.sources import Session

__all__ = ["registry"]

MAVEN = """<settings xmlns="http://maven.apache.org/SETTINGS/1.2.0">
  <mirrors>
    <mirror><id>not-central</id><mirrorOf>*,!central</mirrorOf><url>https://a.example/</url></mirror>
    <mirror><id>all</id><mirrorOf>external:*</mirrorOf><url>https://all.example/maven</url></mirror>
    <mirror><id>corp</id><mirrorOf>central</mirrorOf><url>https://corp.example/maven/</url></mirror>
    <mirror><id>blocker</id><mirrorOf>central</mirrorOf><url>http://0.0.0.0/</url><blocked>true</blocked></mirror>
  </mirrors>
  <proxies>
    <proxy><host>off.example</host><active>false</active></proxy>
    <proxy><protocol>http</protocol><host>plain.example</host><port>3128</port></proxy>
    <proxy><protocol>https</protocol><host>tls.example</host><port>3129</port><username>u</username>
      <password>p@ss/word</password><nonProxyHosts>localhost|*.internal</nonProxyHosts></proxy>
  </proxies>
  <servers>
    <server><id>corp</id><username>${env.NEXUS_USER}</username><password>${env.NEXUS_TOKEN}</password></server>
    <server><id>sealed</id><username>me</username><password>{COQLCE6DU6GtcS5P=}</password></server>
  </servers>
</settings>"""


def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pip: dict[str, str], maven: str = "") -> Settings:
    monkeypatch.setattr(pip_settings, "read", lambda env: pip)
    (tmp_path / ".m2").mkdir(exist_ok=True)
    if maven:
        (tmp_path / ".m2" / "settings.xml").write_text(maven)
    return Settings.read({"NEXUS_USER": "deployer", "NEXUS_TOKEN": "t0ken"}, home=tmp_path)


# ---------------------------------------------------------------- pip
def test_pip_itself_is_asked(tmp_path: Path) -> None:
    (tmp_path / "pip.conf").write_text(
        "[global]\nindex-url = https://global.example/simple\nproxy = http://p.example:1\n"
        "[install]\nextra-index-url =\n  https://one.example/simple\n  https://two.example/simple\n"
        "[list]\nindex-url = https://wrong.example\n"
    )
    env = {"PIP_CONFIG_FILE": str(tmp_path / "pip.conf"), "HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    read = pip_settings.read(env | {"PIP_TRUSTED_HOST": "one.example two.example"})
    assert read["index-url"] == "https://global.example/simple"
    assert read["proxy"] == "http://p.example:1"
    assert read["extra-index-url"].split() == ["https://one.example/simple", "https://two.example/simple"]
    assert read["trusted-host"] == "one.example two.example"
    assert pip_settings.read(env | {"PIP_INDEX_URL": "https://env.example"})["index-url"] == "https://env.example"


def test_without_pip_its_variables_count_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pip_settings.sys, "executable", "/bin/false")
    env = {"PIP_INDEX_URL": "https://i.example", "PIP_EXTRA_INDEX_URL": "", "HOME": "/"}
    assert pip_settings.read(env) == {"index-url": "https://i.example"}


def test_indexes_in_pips_order_and_none_with_no_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip = {
        "index-url": "https://u:pw@one.example/simple",
        "extra-index-url": "https://two.example/a\nhttps://3.example",
    }
    read = settings(tmp_path, monkeypatch, pip)
    assert read.indexes == ("https://one.example/simple", "https://two.example/a", "https://3.example")
    assert read.credentials == {"one.example": ("u", "pw")}
    assert settings(tmp_path, monkeypatch, pip | {"no-index": "true"}).indexes == ()
    assert len(settings(tmp_path, monkeypatch, {}).indexes) == 1, "pip's default"


def test_the_variables_for_certificates_count_after_pips_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    env = {"SSL_CERT_FILE": "/ssl", "REQUESTS_CA_BUNDLE": "/requests"}
    monkeypatch.setattr(pip_settings, "read", lambda _: {"cert": "/pip"})
    assert Settings.read(env, tmp_path).certificates == "/pip"
    monkeypatch.setattr(pip_settings, "read", lambda _: {})
    assert Settings.read(env, tmp_path).certificates == "/requests"
    assert Settings.read({"SSL_CERT_FILE": "/ssl"}, tmp_path).certificates == "/ssl"


# ---------------------------------------------------------------- Maven
def test_a_mirror_by_name_wins_over_patterns_and_servers_give_its_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = settings(tmp_path, monkeypatch, {}, MAVEN)
    assert read.repositories == (("central", "https://corp.example/maven"),)
    assert read.credentials == {"corp.example": ("deployer", "t0ken")}
    assert "sealed" not in read.maven.servers, "only Maven has the key of what it encrypted"


@pytest.mark.parametrize(
    ("pattern", "serves"),
    [
        ("central", True),
        ("*", True),
        ("external:*", True),
        ("other, central", True),
        ("*,!central", False),
        ("o", False),
    ],
)
def test_mirror_patterns(pattern: str, serves: bool) -> None:
    assert maven_settings.Mirror("m", pattern, "").serves("central") is serves


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("https://repo.example/x", "http://u:p%40ss%2Fword@tls.example:3129"),
        ("http://repo.example/x", "http://plain.example:3128"),
        ("https://repo.internal/x", "http://plain.example:3128"),
    ],
)
def test_mavens_proxies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, proxy: str) -> None:
    assert settings(tmp_path, monkeypatch, {}, MAVEN).maven.proxy(url) == proxy


def test_settings_that_are_no_xml_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LabError, match=r"settings\.xml can't be read .*: correct it"):
        settings(tmp_path, monkeypatch, {}, "<settings>")


# ---------------------------------------------------------------- the session that obeys them
def test_the_files_win_over_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://env.example:1")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/env")
    pip = {"proxy": "http://pip.example:1", "cert": "/pip", "client-cert": "/me", "trusted-host": "lax.example:8"}
    session = Session(settings(tmp_path, monkeypatch, pip, MAVEN))

    def route(url: str) -> dict[str, Any]:
        return dict(session.merge_environment_settings(url, {}, False, None, None))

    assert route("https://index.example/a")["proxies"]["https"] == "http://pip.example:1"
    assert route("https://corp.example/maven/a")["proxies"]["https"] == "http://u:p%40ss%2Fword@tls.example:3129"
    assert route("https://index.example/a")["verify"] == "/pip"
    assert route("https://index.example/a")["cert"] == "/me"
    assert route("https://lax.example:8/a")["verify"] is False
    session = Session(settings(tmp_path, monkeypatch, {}, "<settings/>"))
    assert route("https://index.example/a")["proxies"]["https"] == "http://env.example:1"


def test_credentials_go_to_their_host_alone(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", registry.url.replace("//", "//me:p%40ss@") + "/simple")
    wheel = registry.publish("thing", "thing-1.0-py3-none-any.whl", archive({"thing.py": ""}))
    registry.authorization = "Basic " + base64.b64encode(b"me:p@ss").decode()
    lock = Lock.read(write_lock(tmp_path / "lock.json", {"pypi:thing==1.0": [wheel]}))
    assert Cache(tmp_path / "cache", lock=lock).file("pypi:thing==1.0").exists()
    session = Session(Settings.read())
    other = session.prepare_request(requests.Request("GET", "http://other.example/x"))
    assert "Authorization" not in other.headers


def test_netrc_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("machine index.example login me password pw\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    session = Session(settings(tmp_path, monkeypatch, {}))
    prepared = session.prepare_request(requests.Request("GET", "https://index.example/simple/"))
    assert prepared.headers["Authorization"] == "Basic " + base64.b64encode(b"me:pw").decode()


def test_a_distribution_in_a_find_links_folder_needs_no_index(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = archive({"thing.py": ""})
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / "thing-1.0-py3-none-any.whl").write_bytes(content)
    wheel = registry.publish("thing", "thing-1.0-py3-none-any.whl", content)
    monkeypatch.setattr(pip_settings, "read", lambda _: {"no-index": "1", "find-links": f"file://{tmp_path}/wheels"})
    lock = Lock.read(write_lock(tmp_path / "lock.json", {"pypi:thing==1.0": [wheel]}))
    assert Cache(tmp_path / "cache", lock=lock).file("pypi:thing==1.0").read_bytes() == content
    assert not registry.asked


def test_an_extra_index_is_asked_when_the_first_has_nothing(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = registry.publish("thing", "thing-1.0-py3-none-any.whl", archive({"thing.py": ""}))
    urls = {"index-url": f"{registry.url}/empty", "extra-index-url": f"{registry.url}/simple"}
    monkeypatch.setattr(pip_settings, "read", lambda _: urls)
    lock = Lock.read(write_lock(tmp_path / "lock.json", {"pypi:thing==1.0": [wheel]}))
    assert Cache(tmp_path / "cache", lock=lock).file("pypi:thing==1.0").exists()


# ---------------------------------------------------------------- what doctor shows
def test_what_is_shown_holds_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip = {"index-url": "https://u:s3cret@one.example/simple", "proxy": "http://u:s3cret@p.example:1"}
    env = {"HTTPS_PROXY": "http://u:s3cret@env.example:1"}
    shown = settings(tmp_path, monkeypatch, pip, MAVEN).shown(env)
    assert ("Python index", "https://one.example/simple") in shown
    assert ("Maven repository central", "https://corp.example/maven") in shown
    assert ("pip's proxy", "http://***@p.example:1") in shown
    assert ("credentials known for", "corp.example") in shown
    text = str(shown)
    assert not any(secret in text for secret in ("s3cret", "t0ken", "p@ss", "p%40ss"))


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("https://me:pw@h.example/a?sig=1&x=2 failed", "https://***@h.example/a?*** failed"),
        (
            "Max retries exceeded with url: /k?X-Amz-Signature=ab (Caused by",
            "Max retries exceeded with url: /k?*** (Caused by",
        ),
        ("what now? nothing at https://h.example/a", "what now? nothing at https://h.example/a"),
    ],
)
def test_redaction(text: str, clean: str) -> None:
    assert redacted(text) == clean
