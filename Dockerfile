# modelplan as a container: `docker build -t modelplan .`, then
# `docker run --rm -v "$PWD:/work" modelplan analyze model.tflite`. Extras: `--build-arg EXTRAS=targets,verify`.

ARG EXTRAS=targets,completion

FROM python:3.12-slim-bookworm AS build
ARG EXTRAS
RUN apt-get update \
 && apt-get install -y --no-install-recommends g++ \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY pyproject.toml CMakeLists.txt README.md LICENSE ./
COPY core core
COPY docs docs
COPY modelplan modelplan
RUN pip wheel --no-cache-dir --wheel-dir /wheels ".[$EXTRAS]"

FROM python:3.12-slim-bookworm
ARG EXTRAS
COPY --from=build /wheels /wheels
RUN python -m venv /opt/modelplan \
 && /opt/modelplan/bin/pip install --no-cache-dir --no-index --find-links /wheels "modelplan[$EXTRAS]" \
 && rm -rf /wheels \
 && useradd --create-home user
ENV PATH=/opt/modelplan/bin:$PATH
USER user
WORKDIR /work
ENTRYPOINT ["modelplan"]
CMD ["help"]
