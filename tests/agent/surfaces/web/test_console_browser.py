"""The console in a real browser, which must be there already."""

import shutil
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys as Key
from test_browser import CHROMIUM, DRIVER, Site, all_of, chromium, one, until  # noqa: F401

pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="no Chromium with its chromedriver is here")


@pytest.fixture(scope="module")
def site(empty_home, tmp_path_factory):
    home = Path(shutil.copytree(empty_home, tmp_path_factory.mktemp("console") / "home"))
    made = Site(home, person="ana")
    yield made
    made.close()


@pytest.fixture
def browser(chromium, site):  # noqa: F811
    chromium.get(site.url)
    until(chromium, lambda: all_of(chromium, "#text"))
    yield chromium
    assert [entry for entry in chromium.get_log("browser") if entry["level"] == "SEVERE"] == []


def say(browser, text):
    one(browser, "#text").send_keys(text, Key.ENTER)


def test_a_person_talks_corrects_forgets_and_undoes(browser, site):
    say(browser, "My sister Lucie is allergic to nuts")
    until(browser, lambda: all_of(browser, ".after a[href^='/memories/']"))
    one(browser, ".after a[href^='/memories/']").click()
    until(browser, lambda: all_of(browser, "article.fact"))
    assert "You said this on" in one(browser, "article.fact").text
    field = one(browser, "#content")
    field.clear()
    field.send_keys("My sister Lucie is allergic to peanuts", Key.ENTER)
    until(browser, lambda: all_of(browser, ".steps del"))
    assert one(browser, ".steps del").text == "My sister Lucie is allergic to nuts"
    one(browser, "form[action$='/undo'] button").click()
    until(browser, lambda: one(browser, "h1").text == "My sister Lucie is allergic to nuts")
    one(browser, "form[action$='/forget'] button").click()
    browser.switch_to.alert.accept()
    until(browser, lambda: one(browser, "h1").text == "Forgotten")
    one(browser, "form[action='/restore'] button").click()
    until(browser, lambda: "Lucie" in one(browser, "main").text)


def test_the_answer_appears_below_and_the_page_stays(browser):
    say(browser, "hello")
    until(browser, lambda: "remember" in all_of(browser, ".said .assistant")[-1].text)
    assert one(browser, "#text").get_attribute("value") == ""
    assert browser.switch_to.active_element == one(browser, "#text")


def test_without_scripts_it_answers_too(browser, site):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(site.url)
        one(browser, "#text").send_keys("I have a cat")
        one(browser, "#talk button").click()
        until(browser, lambda: "I have a cat" in one(browser, ".said").text)
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_a_phone_does_not_scroll_sideways(browser, site):
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        for path in ("/", "/memories", "/tasks", "/documents", "/traces"):
            browser.get(site.url + path)
            assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
