# One image for every part: server, worker, deployment, command line (docker/entrypoint says which).
#
#   docker build --tag hyperbo:0.1.0 .
#   docker build --tag hyperbo:0.1.0-cuda --build-arg ACCELERATOR=cuda .      # NVIDIA; its driver is the host's
#   docker build --tag hyperbo:0.1.0-tpu --build-arg ACCELERATOR=tpu .
#
# The tag is exact, yet whoever owns it can move it. What it stands for today, to be appended as @sha256:...:
#   docker buildx imagetools inspect python:3.11.14-slim-bookworm --format '{{.Manifest.Digest}}'
FROM python:3.11.14-slim-bookworm AS base


FROM base AS builder
ARG ACCELERATOR=cpu
ENV UV_COMPILE_BYTECODE=1 \
    UV_LINK_MODE=copy \
    UV_PYTHON_DOWNLOADS=never \
    VIRTUAL_ENV=/opt/venv
WORKDIR /opt/hyperbo

# uv itself, as the lock has it.
COPY requirements.lock ./
RUN sed -n '/^uv==/,/[^\\]$/p' requirements.lock > /tmp/uv.txt \
    && pip install --no-cache-dir --disable-pip-version-check --require-hashes --no-deps --requirement /tmp/uv.txt

# Versions are those of the lock, and uv verifies its hashes; what the tests need is left out.
COPY pyproject.toml ./
RUN --mount=type=cache,target=/root/.cache/uv \
    case "$ACCELERATOR" in \
        cpu) extra=all ;; \
        cuda) extra=gpu ;; \
        tpu) extra=tpu ;; \
        *) echo "ACCELERATOR is '$ACCELERATOR', and must be cpu, cuda or tpu" >&2; exit 1 ;; \
    esac \
    && uv venv "$VIRTUAL_ENV" \
    && uv pip install --constraint requirements.lock --build-constraints requirements.lock \
        --requirement pyproject.toml --extra all --extra "$extra"

# Editable: a deployment names its flow by a path, so the sources must be there, and there once.
COPY LICENSE README.md prefect.yaml ./
COPY docker/entrypoint docker/automations.yaml docker/
COPY hyperbo hyperbo
COPY pipelines pipelines
COPY pd1_builder pd1_builder
COPY flows flows
RUN --mount=type=cache,target=/root/.cache/uv \
    uv pip install --build-constraints requirements.lock --no-deps --editable . \
    && "$VIRTUAL_ENV/bin/python" -m compileall -q hyperbo pipelines pd1_builder flows


FROM base
LABEL org.opencontainers.image.title="hyperbo" \
      org.opencontainers.image.description="Versioned hyperparameter-tuning data, pre-trained Gaussian-process priors, and the evidence that they are good" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0"

# The number is fixed, because volumes outlive an image; kubernetes/ and compose.yaml rely on it.
RUN groupadd --gid 10001 hyperbo \
    && useradd --uid 10001 --gid hyperbo --no-log-init --no-create-home --home-dir /srv/hyperbo hyperbo \
    && install --directory --owner hyperbo --group hyperbo /srv/hyperbo
COPY --from=builder /opt/venv /opt/venv
COPY --from=builder /opt/hyperbo /opt/hyperbo

# Nothing phones home; all that is written is in the volume, the server's copy of its user interface too.
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    OPENBLAS_NUM_THREADS=1 \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    PREFECT_SERVER_ANALYTICS_ENABLED=false \
    DO_NOT_TRACK=1 \
    PREFECT_HOME=/srv/hyperbo/prefect \
    PREFECT_SERVER_API_HOST=0.0.0.0 \
    PREFECT_SERVER_UI_STATIC_DIRECTORY=/srv/hyperbo/prefect/ui \
    HYPERBO_DATA_DIR=/srv/hyperbo/data \
    HYPERBO_SERVICE=/srv/hyperbo/service.toml \
    XDG_CACHE_HOME=/srv/hyperbo/cache

USER 10001:10001
WORKDIR /srv/hyperbo
VOLUME /srv/hyperbo
# The server's API; the worker's health.
EXPOSE 4200 8080
# A server, a worker and a command are healthy in ways of their own: compose.yaml has their health checks.
HEALTHCHECK NONE
ENTRYPOINT ["/opt/hyperbo/docker/entrypoint"]
