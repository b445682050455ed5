# Everything: jobs, checks, watch. docker build -f deploy/containers/jobs.Dockerfile .
FROM python:3.11-slim-bookworm AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE requirements.lock ./
COPY acktrail acktrail
COPY ingest ingest
COPY pipelines pipelines
COPY expectations expectations
COPY lab lab
# The versions that the tests ran with.
RUN sed -e '/--hash=/d' -e 's/ *\\$//' requirements.lock > constraints.txt \
    && python -m venv /opt/acktrail \
    && /opt/acktrail/bin/pip install --no-cache-dir --constraint constraints.txt '.[all]'

FROM python:3.11-slim-bookworm
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends openjdk-17-jre-headless procps \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/acktrail /opt/acktrail
RUN useradd --system --uid 10001 --user-group --home-dir /tmp --shell /usr/sbin/nologin acktrail
ENV PATH=/opt/acktrail/bin:$PATH PYTHONUNBUFFERED=1 ACKTRAIL_CACHE=/opt/acktrail/cache
# The pinned jars, and the archive that makes Spark start fast: nothing is fetched at run time.
RUN python -m pipelines.warm --archive
USER 10001:10001
WORKDIR /tmp
ENTRYPOINT ["acktrail"]
CMD ["watch", "--config", "/etc/acktrail/acktrail.toml"]
