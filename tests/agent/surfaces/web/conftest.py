"""The pages over a companion, with traces that were written for them."""

import shutil
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest

from agent.surfaces.web.application import app

sys.path.insert(0, str(Path(__file__).parent))

from written_traces import Written

QUIET = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --window-size=1440,900"
)


@pytest.fixture(scope="session")
def started_chromium(tmp_path_factory):
    """A real browser, if it is here already."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not (browser and shutil.which("chromedriver")):
        pytest.skip("no Chromium with its chromedriver is here")
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = browser
    for argument in (*QUIET.split(), f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options=options, service=Service(shutil.which("chromedriver")))
    yield driver
    driver.quit()


@pytest.fixture
def chromium(started_chromium):
    """The browser, with no page and no record of what the test before did."""
    started_chromium.get("about:blank")
    for log in ("browser", "performance"):
        started_chromium.get_log(log)
    return started_chromium


@pytest.fixture
async def pet(open_pet):
    return await open_pet()


@pytest.fixture
def write(pet):
    return Written(pet)


@pytest.fixture
async def ask(pet):
    """`ask(loopback=False, host="hachi.example")`: a client of the pages; with a `person` of the console."""
    async with AsyncExitStack() as closing:

        def client(*, loopback=True, host="localhost:8020", person=None):
            transport = httpx.ASGITransport(
                app=app(pet, loopback=loopback, person=person), raise_app_exceptions=False
            )
            made = httpx.AsyncClient(transport=transport, base_url=f"http://{host}")
            closing.push_async_callback(made.aclose)
            return made

        yield client
