# The judge (green agent). Build: scripts/build-green-image.sh
# Layers from the rarest to the most frequent change: system packages, locked dependencies, task sets, code.

FROM python:3.11-slim-bookworm@sha256:0bee7276f83efd4a1ee05bbbf4281d95ed28e079220a9457f25a93e3f1e3c31b AS dependencies
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
COPY requirements.lock /build/
RUN python -m venv --without-pip /opt/wabe \
  && python -m pip --python /opt/wabe/bin/python install --require-hashes --no-deps -r /build/requirements.lock

FROM dependencies AS wheel
WORKDIR /build
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN /opt/wabe/bin/hatchling build -t wheel -d /wheel

FROM python:3.11-slim-bookworm@sha256:0bee7276f83efd4a1ee05bbbf4281d95ed28e079220a9457f25a93e3f1e3c31b
# libatomic1: Playwright's own Node needs it, or every browser call fails. tini: ends what a dead browser leaves behind.
# curl: the health check, and the platform's own one. Fonts: `wabe doctor --fonts` lists the scripts they are for.
# Taken out again: Mesa's drivers with their compiler, which Chromium without a window never loads (it draws by its own
# SwiftShader, WebGL too), and a debugging layer; together 180 MB. And the serif fonts for Chinese, Japanese and Korean,
# which are drawn without serifs then: 54 MB.
RUN apt-get update \
  && apt-get install -y --no-install-recommends chromium-headless-shell curl fonts-dejavu-core fonts-liberation \
    fonts-noto-cjk fonts-noto-color-emoji fonts-noto-core libatomic1 tini \
  && rm -rf /var/lib/apt/lists/* /usr/lib/*/libLLVM-*.so* /usr/lib/*/libz3.so* /usr/lib/*/dri \
    /usr/lib/chromium/libVkLayer_khronos_validation.so /usr/share/fonts/opentype/noto/NotoSerifCJK-* \
  && useradd --uid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin wabe \
  && install -d -m 1777 /app/.output
COPY --from=dependencies /opt/wabe /opt/wabe
COPY docker/healthcheck.sh /app/healthcheck.sh
COPY scenarios /app/scenarios
# Copied, not mounted: builders without BuildKit do not notice that a mounted file has changed.
COPY --from=wheel /wheel /opt/wheel
RUN python -m pip --python /opt/wabe/bin/python install --no-cache-dir --no-deps --root-user-action=ignore \
  /opt/wheel/*.whl

ARG JUDGE_MODEL=""
# HOME is /tmp so that the image also runs read-only and under any user id.
ENV PATH=/opt/wabe/bin:/usr/local/bin:/usr/bin:/bin \
  HOME=/tmp \
  PYTHONDONTWRITEBYTECODE=1 \
  PYTHONUNBUFFERED=1 \
  WABE_IN_CONTAINER=1 \
  WABE_OUTPUT_DIR=/app/.output \
  WABE_SCENARIOS=/app/scenarios \
  WABE_JUDGE_MODEL=${JUDGE_MODEL}
LABEL org.opencontainers.image.title="WABE judge" \
  org.opencontainers.image.description="Assesses web agents over A2A in a real browser" \
  org.opencontainers.image.licenses="MIT"
WORKDIR /app
VOLUME /app/.output
USER 10001:10001
EXPOSE 9009
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=6 CMD ["/app/healthcheck.sh"]
ENTRYPOINT ["tini", "--", "wabe", "serve"]
CMD ["--host", "0.0.0.0", "--port", "9009"]
