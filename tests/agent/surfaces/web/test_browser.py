"""The pages in a real browser, which must be there already."""

import asyncio
import json
import shutil
import threading
from pathlib import Path

import pytest
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys as Key
from selenium.webdriver.support.ui import WebDriverWait
from written_traces import HOSTILE, Written, a_turn, remembering

from agent.surfaces.http.server import address_of, listening, server_of
from agent.surfaces.web.application import app
from agent.tracing.store import follow
from hachi import Companion, Settings


class Site:
    """The pages on a thread of their own: a browser is waited for, a loop must not be."""

    def __init__(self, home, person=None):
        self._person = person
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(home)))
        self._thread.start()
        assert self._ready.wait(30)

    async def _serve(self, home):
        self._loop = asyncio.get_running_loop()
        async with Companion.open(Settings(home=home, embedder="bundled"), periodic_jobs=False) as pet:
            self.write = Written(pet)
            with listening("127.0.0.1", 0) as listener:
                self.url = address_of(listener)
                self.server = server_of(
                    app(pet, person=self._person, loopback=True, stopping=lambda: self.server.should_exit)
                )
                self.server.capture_signals = _nothing  # type: ignore[method-assign]
                self._ready.set()
                await self.server.serve(sockets=[listener])

    def written(self, root=None, **about):
        return asyncio.run_coroutine_threadsafe(self.write(root, **about), self._loop).result(20)

    def close(self):
        self.server.should_exit = True
        self._thread.join(30)


def _nothing():
    from contextlib import nullcontext

    return nullcontext()


@pytest.fixture(scope="module")
def site(empty_home, tmp_path_factory):
    home = Path(shutil.copytree(empty_home, tmp_path_factory.mktemp("page") / "home"))
    made = Site(home)
    made.turn = made.written()  # type: ignore[attr-defined]
    made.written(remembering(), turn_id=made.turn.id)  # type: ignore[attr-defined]
    made.failed = made.written(a_turn("and what failed?", failing=True), user="ben")  # type: ignore[attr-defined]
    made.other = made.written(a_turn(reply="You love dogs."))  # type: ignore[attr-defined]
    yield made
    made.close()


@pytest.fixture
def browser(chromium, site):
    """At the list; afterwards nothing was complained of, and nobody else asked."""

    chromium.get(f"{site.url}/traces")

    def at_the_list():
        # A navigation that the test before left under way may come last.
        if chromium.current_url != f"{site.url}/traces":
            chromium.get(f"{site.url}/traces")
        return len(all_of(chromium, "a.open")) >= 3

    until(chromium, at_the_list)
    yield chromium
    complaints = [entry["message"] for entry in chromium.get_log("browser") if entry["level"] == "SEVERE"]
    assert complaints == []
    asked = [json.loads(entry["message"])["message"] for entry in chromium.get_log("performance")]
    urls = [e["params"]["request"]["url"] for e in asked if e["method"] == "Network.requestWillBeSent"]
    assert {url.split("/")[2] for url in urls if "://" in url and not url.startswith("chrome")} <= {
        site.url.split("/")[2]
    }


def one(browser, selector):
    return browser.find_element(By.CSS_SELECTOR, selector)


def all_of(browser, selector):
    return browser.find_elements(By.CSS_SELECTOR, selector)


def press(browser, *keys):
    until(browser, lambda: browser.execute_script("return document.readyState") == "complete")
    for key in keys:  # as a keyboard does: what has the focus may be hidden just then
        ActionChains(browser).send_keys(key).perform()


def until(browser, true):
    """A page that is just being replaced is asked again."""
    going = (NoSuchElementException, StaleElementReferenceException)
    WebDriverWait(browser, 10, poll_frequency=0.05, ignored_exceptions=going).until(lambda _: true())


def sideways(browser, *urls):
    """Those of the pages that a phone has to scroll sideways."""
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    wide = []
    try:
        for url in urls:
            browser.get(url)
            if browser.execute_script("return document.documentElement.scrollWidth") > 390:
                wide.append(url)
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    return wide


def test_the_list_is_filtered_and_a_trace_opened(browser):
    assert len(all_of(browser, "a.open")) >= 3
    one(browser, "[name=user]").send_keys("ben", Key.ENTER)
    until(browser, lambda: len(all_of(browser, "a.open")) == 1)
    one(browser, "a.open").click()
    assert one(browser, "h1").text == "and what failed?"


def test_the_list_is_walked_by_keys(browser):
    links = all_of(browser, "a.open")
    press(browser, "j", "j", "k")
    until(browser, lambda: browser.switch_to.active_element == links[0])
    press(browser, "/")
    until(browser, lambda: browser.switch_to.active_element == one(browser, "#search"))
    press(browser, "j", Key.ESCAPE, "?")
    until(browser, lambda: one(browser, "#help").is_displayed())
    press(browser, Key.ESCAPE)
    until(browser, lambda: not one(browser, "#help").is_displayed())
    press(browser, "j", Key.ENTER)
    until(browser, lambda: "/traces/" in browser.current_url)
    until(browser, lambda: all_of(browser, "#pane"))
    press(browser, Key.ESCAPE)
    until(browser, lambda: all_of(browser, "#traces"))


def test_two_chosen_traces_are_compared(browser, site):
    for summary in (site.turn, site.other):
        one(browser, f"#{summary.id} input").click()
    press(browser, "c")
    until(browser, lambda: "/compare" in browser.current_url and all_of(browser, ".differences"))
    marked = {mark.text for mark in all_of(browser, "mark")}
    assert {"cats", "dogs"} <= marked


def test_a_new_turn_appears_in_a_live_list(browser, site, monkeypatch):
    monkeypatch.setattr(follow, "PAUSE", 0.1)
    press(browser, "l")
    until(browser, lambda: one(browser, "#told").text == "Live")
    site.written(a_turn("has this just been said?"))
    until(browser, lambda: "has this just been said?" in one(browser, "tbody tr").text)
    press(browser, "l")


def test_what_is_hostile_does_nothing(browser, site):
    root = a_turn(HOSTILE + 300_000 * "x", HOSTILE)
    root.data[HOSTILE] = HOSTILE
    made = site.written(root, said="<img src=x onerror=alert(1)>\u202e", user="<b>eve", reply=HOSTILE[:20])
    browser.get(f"{site.url}/traces/{made.id}")
    assert len(browser.page_source) < 200_000
    press(browser, *"jjjjj")
    until(browser, lambda: one(browser, "#pane").get_attribute("data-shown") == "0.5")
    assert "\\x1b[31mred\\u202e" in one(browser, "#pane").get_attribute("textContent")
    assert all_of(browser, "#pane img, #pane script, b b") == []


def test_a_narrow_page_does_not_scroll_sideways(browser, site):
    opened, compared = f"/traces/{site.turn.id}?span=0.4", f"/compare?id={site.turn.id}&id={site.other.id}"
    assert sideways(browser, *(site.url + page for page in ("/traces", opened, compared))) == []
