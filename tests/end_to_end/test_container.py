"""Entry point, Dockerfile, compose file and Kubernetes templates, tried without an engine."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
ENTRYPOINT = ROOT / "docker/entrypoint"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
TEMPLATES = {path.stem.removeprefix("work-pool-"): path for path in (ROOT / "kubernetes").glob("*.json")}

# The entry point.


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Variables of a part without its container: this environment's commands, this checkout's code."""
    home = tmp_path_factory.mktemp("home")
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "HYPERBO_"))
    }
    return kept | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PREFECT_HOME": str(home / "prefect"),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "HYPERBO_DATA_DIR": str(home / "data"),
    }


def run(environment, *arguments, **variables):
    return subprocess.run(
        [ENTRYPOINT, *arguments], env=environment | variables, capture_output=True, text=True, timeout=120
    )


@contextlib.contextmanager
def running(environment, log, *arguments, **variables):
    """A part that is asked to end as an engine asks it, and must be gone soon, with all that it started."""
    with log.open("w") as output:
        # A session of its own: its process group holds what it starts, and an interrupt is not ignored in it.
        part = subprocess.Popen(
            [ENTRYPOINT, *arguments],
            env=environment | variables, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            yield part
            part.terminate()
            assert part.wait(timeout=90) in (0, -signal.SIGTERM), log.read_text()
            with pytest.raises(ProcessLookupError):
                os.killpg(part.pid, 0)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(part.pid, signal.SIGKILL)
            part.wait()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def request(url, content=None):
    sent = None if content is None else json.dumps(content).encode()
    headers = {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, sent, headers), timeout=10) as answer:
        return json.load(answer)


def answer_of(part, log, ask, *, seconds=90):
    """What `ask` returns, once it does and it is not empty; while `part` runs."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and part.poll() is None:
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            if answer := ask():
                return answer
        time.sleep(0.2)
    pytest.fail(f"no answer; the log says: {log.read_text()}")


@pytest.fixture(scope="module")
def api(environment, tmp_path_factory):
    """Address of the API of a server that the entry point started."""
    log = tmp_path_factory.mktemp("server") / "log"
    port = str(free_port())
    variables = {"PREFECT_SERVER_API_HOST": "127.0.0.1", "PREFECT_SERVER_API_PORT": port}
    with running(environment, log, "server", **variables) as part:
        url = f"http://127.0.0.1:{port}/api"
        assert answer_of(part, log, lambda: request(f"{url}/health")) is True
        yield url


def health_check(service, port_inside, port):
    """Run the health check of the compose file against the port that a part has here."""
    test = COMPOSE["services"][service]["healthcheck"]["test"]
    assert test[:2] == ["CMD", "python"]
    assert f":{port_inside}/" in test[-1]
    command = [sys.executable, *test[2:-1], test[-1].replace(f":{port_inside}/", f":{port}/")]
    return subprocess.run(command, capture_output=True, timeout=60).returncode


def test_health_check_of_the_server(api):
    port = api.removesuffix("/api").rpartition(":")[2]
    assert health_check("server", 4200, port) == 0
    assert health_check("server", 4200, free_port()) != 0


def test_worker_registers_in_a_pool_of_its_own(environment, api, tmp_path):
    log, port = tmp_path / "log", str(free_port())
    variables = {
        "PREFECT_API_URL": api,
        "PREFECT_WORKER_WEBSERVER_HOST": "127.0.0.1",
        "PREFECT_WORKER_WEBSERVER_PORT": port,
    }
    with running(environment, log, "worker", "of-a-test", **variables) as part:
        (worker,) = answer_of(part, log, lambda: request(f"{api}/work_pools/of-a-test/workers/filter", {}))
        assert worker["status"] == "ONLINE"
        assert request(f"{api}/work_pools/of-a-test")["type"] == "process"
        assert answer_of(part, log, lambda: health_check("worker", 8080, port) == 0)


def test_deploy_makes_pools_and_deployments(environment, api, tmp_path):
    done = run(
        environment, "deploy", PREFECT_API_URL=api,
        HYPERBO_SERVICE=str(tmp_path / "service.toml"), HYPERBO_ACCELERATOR_POOL="of-a-deployment",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    declared = yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]
    deployed = request(f"{api}/deployments/filter", {})
    assert {each["name"] for each in deployed} == {each["name"] for each in declared}
    assert {each["work_pool_name"] for each in deployed} == {"cpu", "of-a-deployment"}
    assert {step["directory"] for each in deployed for step in each["pull_steps"][0].values()} == {str(ROOT)}


def test_worker_gives_up_where_no_api_answers(environment):
    done = run(
        environment, "worker", "cpu",
        PREFECT_API_URL=f"http://127.0.0.1:{free_port()}/api", HYPERBO_API_WAIT_SECONDS="1",
    )  # fmt: skip
    assert done.returncode not in (0, 2)
    assert "started" not in done.stdout


API = {"PREFECT_API_URL": "http://x/api"}


@pytest.mark.parametrize(
    ("arguments", "variables", "message"),
    [
        (["server", "4201"], {}, "server takes no arguments"),
        (["worker"], API, "the name of a work pool"),
        (["worker", "cpu", "gpu"], API, "the name of a work pool"),
        (["worker", "cpu"], {}, "worker needs PREFECT_API_URL"),
        (["worker", "cpu"], API | {"HYPERBO_API_WAIT_SECONDS": "0"}, "a number of seconds"),
        (["deploy", "cpu"], {"HYPERBO_SERVICE": "service.toml"}, "deploy takes no arguments"),
        (["deploy"], {"HYPERBO_SERVICE": "service.toml"}, "deploy needs PREFECT_API_URL"),
        (["deploy"], API, "deploy needs HYPERBO_SERVICE"),
    ],
)
def test_wrong_use_is_told(environment, arguments, variables, message):
    done = run(environment, *arguments, **variables)
    assert done.returncode == 2
    assert message in done.stderr.splitlines()[0]
    assert "Usage:" in done.stderr


def test_without_arguments_it_tells_how_it_is_used(environment):
    done = run(environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert parts_in(done.stdout) >= {"server", "worker", "deploy"}


def test_other_words_are_the_command_line(environment):
    done = run(environment, "data", "list")
    assert done.returncode == 0, done.stderr
    assert environment["HYPERBO_DATA_DIR"] in done.stdout + done.stderr


def test_commands_of_prefect_are_passed_on(environment):
    """A Kubernetes job gives the entry point `prefect flow-run execute`."""
    done = run(environment, "prefect", "--version")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in PROJECT["optional-dependencies"]["flows"][0]


def parts_in(usage):
    return set(re.findall(r"(?m)^  ([a-z]+) ", usage))


# The compose file.


def test_compose_commands_are_those_of_the_entry_point(environment):
    known = parts_in(run(environment).stdout)
    own = [service for service in COMPOSE["services"].values() if "build" in service]
    assert len(own) == 3
    assert {service["command"][0] for service in own} <= known


def test_compose_images_have_a_version():
    images = {name: service["image"] for name, service in COMPOSE["services"].items()}
    assert all(is_pinned(image) for image in images.values()), images
    assert {images[name] for name in ("server", "deploy", "worker")} == {f"hyperbo:{PROJECT['version']}"}


def test_compose_has_no_default_of_a_secret():
    text = (ROOT / "compose.yaml").read_text()
    assert all(":?" in inside for inside in re.findall(r"\$\{([^}]*)\}", text))
    secrets = [
        value
        for service in COMPOSE["services"].values()
        for name, value in service.get("environment", {}).items()
        if "PASSWORD" in name
    ]
    assert len(secrets) == 2
    assert all(re.fullmatch(r"\$\{POSTGRES_PASSWORD:\?[^}]+\}", secret) for secret in secrets)


def test_compose_publishes_to_this_machine_alone():
    ports = [port for service in COMPOSE["services"].values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_compose_server_is_on_the_database(monkeypatch, tmp_path):
    from prefect.settings import Settings

    for name, value in COMPOSE["services"]["server"]["environment"].items():
        monkeypatch.setenv(name, "p@ss/w%rd" if "PASSWORD" in name else value)
    url = Settings(home=tmp_path).server.database.connection_url
    assert url is not None
    assert url.get_secret_value() == "postgresql+asyncpg://prefect:p%40ss%2Fw%25rd@postgres:5432/prefect"


@pytest.mark.parametrize("file", ["Dockerfile", "compose.yaml", "docker/entrypoint"])
def test_settings_of_prefect_exist(file):
    """A misspelt variable would be ignored in silence."""
    from prefect import settings

    names = set(re.findall(r"PREFECT_[A-Z][A-Z_]+[A-Z]", (ROOT / file).read_text()))
    assert names
    assert [name for name in names if not hasattr(settings, name)] == []


# The Dockerfile.


def instructions():
    """(instruction, arguments) in order, with lines that are continued joined and comments left out."""
    text = (ROOT / "Dockerfile").read_text()
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [tuple(line.split(maxsplit=1)) for line in joined.splitlines() if line]


def is_pinned(image):
    """A digest, or a tag that is a whole version: of three numbers, of PostgreSQL two."""
    name, _, tag = image.rpartition(":")
    whole = r"\d+\.\d+\b" if name == "postgres" else r"\d+\.\d+\.\d+\b"
    return name.endswith("@sha256") or (bool(name) and re.match(whole, tag) is not None)


def copied():
    """Paths of the repository that the image is made of."""
    sources = [
        arguments.split()[:-1]
        for word, arguments in instructions()
        if word == "COPY" and "--from" not in arguments
    ]
    return {path for paths in sources for path in paths}


def test_dockerfile_starts_from_what_is_pinned():
    stages = set()
    for arguments in (arguments for word, arguments in instructions() if word == "FROM"):
        image, *name = arguments.split(" AS ")
        assert image in stages or is_pinned(image), image
        stages.update(name)
    assert stages


def test_dockerfile_ends_as_another_user_than_root():
    words = instructions()
    last = max(number for number, (word, _) in enumerate(words) if word == "FROM")
    (user,) = {arguments for word, arguments in words[last:] if word == "USER"}
    assert user == "10001:10001"
    assert not any(word == "RUN" and "pip install" in arguments for word, arguments in words[last:])


def test_dockerfile_copies_what_there_is():
    assert {path for path in copied() if not (ROOT / path).exists()} == set()
    patterns = PYPROJECT["tool"]["setuptools"]["packages"]["find"]["include"]
    assert {pattern.removesuffix("*") for pattern in patterns} <= copied()


def test_context_is_what_is_copied():
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    assert {rule[1:] for rule in rules if rule.startswith("!")} == copied()


def test_dockerfile_installs_extras_that_exist():
    text = (ROOT / "Dockerfile").read_text()
    accelerators = dict(re.findall(r"^ +(\w+)\) extra=(\w+) ;;", text, re.MULTILINE))
    assert accelerators == {"cpu": "all", "cuda": "gpu", "tpu": "tpu"}
    assert set(accelerators.values()) <= PROJECT["optional-dependencies"].keys()


def test_dockerfile_takes_uv_from_the_lock():
    """The expression is the Dockerfile's own, on the lock as it is now."""
    (expression,) = re.findall(r"sed -n '([^']+)' requirements.lock", (ROOT / "Dockerfile").read_text())
    lines = subprocess.run(
        ["sed", "-n", expression, "requirements.lock"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert re.fullmatch(r"uv==[\d.]+ \\", lines[0])
    assert len(lines) > 1
    assert all(re.fullmatch(r" +--hash=sha256:[0-9a-f]{64}( \\)?", line) for line in lines[1:])


def test_image_has_the_version_of_the_project():
    text = (ROOT / "Dockerfile").read_text()
    assert f'image.version="{PROJECT["version"]}"' in text
    assert set(re.findall(r"hyperbo:(\d+\.\d+\.\d+)", text)) == {PROJECT["version"]}


def test_image_starts_at_the_entry_point():
    (entry,) = {arguments for word, arguments in instructions() if word == "ENTRYPOINT"}
    (path,) = json.loads(entry)
    inside = ROOT / Path(path).relative_to("/opt/hyperbo")
    assert inside == ENTRYPOINT
    assert os.access(inside, os.X_OK)


# The Kubernetes work pools.


def placeholders(value):
    """Names in `{{ }}` anywhere in a JSON value."""
    return set(re.findall(r"\{\{ *(\w+) *\}\}", json.dumps(value)))


def test_there_is_a_template_for_each_accelerator():
    assert TEMPLATES.keys() == {"gpu", "tpu"}


@pytest.mark.parametrize("kind", sorted(TEMPLATES))
def test_template_declares_the_variables_it_uses(kind):
    template = json.loads(TEMPLATES[kind].read_text())
    assert template.keys() == {"variables", "job_configuration"}
    assert placeholders(template["job_configuration"]) == template["variables"]["properties"].keys()


@pytest.mark.parametrize("kind", sorted(TEMPLATES))
def test_template_asks_for_the_accelerator(kind):
    pod = pod_of(kind)
    (container,) = pod["containers"]
    resource = {"gpu": "nvidia.com/gpu", "tpu": "google.com/tpu"}[kind]
    # Kubernetes wants the same number of an extended resource requested and at most.
    assert container["resources"]["limits"][resource] == container["resources"]["requests"][resource]
    assert [taint["key"] for taint in pod["tolerations"]] == [resource]
    assert pod["nodeSelector"]


@pytest.mark.parametrize("kind", sorted(TEMPLATES))
def test_template_runs_the_image_as_its_user(kind):
    pod = pod_of(kind)
    user = next(arguments for word, arguments in instructions() if word == "USER")
    security = pod["securityContext"]
    assert security["runAsNonRoot"] is True
    assert f"{security['runAsUser']}:{security['runAsGroup']}" == user
    image = json.loads(TEMPLATES[kind].read_text())["variables"]["properties"]["image"]["default"]
    accelerator = {"gpu": "cuda", "tpu": "tpu"}[kind]
    assert image == f"hyperbo:{PROJECT['version']}-{accelerator}"
    assert f"--tag {image} --build-arg ACCELERATOR={accelerator} " in (ROOT / "Dockerfile").read_text()


@pytest.mark.parametrize("kind", sorted(TEMPLATES))
def test_server_takes_the_template(api, kind):
    template = json.loads(TEMPLATES[kind].read_text())
    pool = {"name": f"kubernetes-{kind}", "type": "kubernetes", "base_job_template": template}
    assert request(f"{api}/work_pools/", pool)["base_job_template"] == template
    # It looks: an undeclared variable is refused.
    del template["variables"]["properties"]["memory"]
    with pytest.raises(urllib.error.HTTPError, match="422"):
        request(f"{api}/work_pools/", pool | {"name": "refused"})


def pod_of(kind):
    template = json.loads(TEMPLATES[kind].read_text())
    return template["job_configuration"]["job_manifest"]["spec"]["template"]["spec"]
