# The agent and the exporter, without Java: docker build -f deploy/containers/agent.Dockerfile .
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
    && /opt/acktrail/bin/pip install --no-cache-dir --constraint constraints.txt '.[policy,prometheus]'

FROM python:3.11-slim-bookworm
COPY --from=build /opt/acktrail /opt/acktrail
RUN useradd --system --uid 10001 --user-group --home-dir /tmp --shell /usr/sbin/nologin acktrail
ENV PATH=/opt/acktrail/bin:$PATH PYTHONUNBUFFERED=1
USER 10001:10001
WORKDIR /tmp
ENTRYPOINT ["acktrail"]
CMD ["agent", "--config", "/etc/acktrail/acktrail.toml"]
