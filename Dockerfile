FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY agent agent
COPY hachi hachi
COPY memory memory
COPY prompts prompts
COPY tools tools
RUN python -m venv /opt/hachi \
    && /opt/hachi/bin/pip install --no-cache-dir --constraint constraints.txt '.[postgres,discord,slack,otel]'

FROM python:3.13-slim
COPY --from=build /opt/hachi /opt/hachi
RUN useradd --create-home hachi && mkdir /data && chown hachi /data
USER hachi
ENV PATH=/opt/hachi/bin:$PATH HACHI_HOME=/data PYTHONUNBUFFERED=1
VOLUME /data
ENTRYPOINT ["hachi"]
CMD ["chat"]
