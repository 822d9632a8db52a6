"""The console in a real browser, which must be there already."""

import shutil
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from selenium.webdriver.common.keys import Keys as Key
from test_browser import Site, all_of, one, sideways, until

from agent.surfaces.web.pages import markdown


@pytest.fixture(scope="module")
def site(empty_home, tmp_path_factory):
    home = Path(shutil.copytree(empty_home, tmp_path_factory.mktemp("console") / "home"))
    made = Site(home, person="ana")
    yield made
    made.close()


@pytest.fixture
def browser(chromium, site):
    chromium.get(site.url)
    until(chromium, lambda: all_of(chromium, "#text"))
    yield chromium
    assert [entry for entry in chromium.get_log("browser") if entry["level"] == "SEVERE"] == []


def say(browser, text):
    one(browser, "#text").send_keys(text, Key.ENTER)


def test_times_are_by_the_browsers_clock_which_is_kept_once_something_is_said(browser, site):
    """Runs first: what is said tells the zone, which is known from then on."""
    browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Tokyo"})
    browser.get(f"{site.url}/memories")
    one(browser, "#content").send_keys("Lucie plays chess")
    one(browser, "form.long button").click()
    until(browser, lambda: all_of(browser, "time"))
    shown = one(browser, "time")
    moment = datetime.fromisoformat(shown.get_attribute("datetime")).astimezone(ZoneInfo("Asia/Tokyo"))
    assert shown.text == moment.strftime("%d %b %Y")
    assert shown.get_attribute("title").startswith(moment.strftime("%A %d %B %Y, %H:%M:%S "))
    browser.get(site.url)
    say(browser, "Good morning")
    until(browser, lambda: all_of(browser, "#said time"))
    browser.get(f"{site.url}/tasks")
    assert not all_of(browser, "time[data-form]")
    one(browser, "#description").send_keys("call mum")
    one(browser, "#due").send_keys("tomorrow 9am", Key.ENTER)
    until(browser, lambda: all_of(browser, ".row time"))
    assert one(browser, ".row time").text.endswith(" 09:00")
    browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})


def test_a_person_talks_corrects_forgets_and_undoes(browser, site):
    say(browser, "My sister Lucie is allergic to nuts")
    until(browser, lambda: "nuts" in "".join(learned.text for learned in all_of(browser, ".learned")))
    browser.get(all_of(browser, ".learned a")[-1].get_attribute("href"))
    until(browser, lambda: all_of(browser, "article.fact"))
    assert "You said this on" in one(browser, "article.fact").text
    one(browser, ".change summary").click()
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
    until(browser, lambda: all_of(browser, "article.fact"))
    assert one(browser, "h1").text == "My sister Lucie is allergic to nuts"


def test_the_answer_appears_below_and_the_page_stays(browser):
    say(browser, "hello")
    until(browser, lambda: "Why this answer" in all_of(browser, ".said .assistant")[-1].text)
    assert one(browser, "#text").get_attribute("value") == ""
    assert browser.switch_to.active_element == one(browser, "#text")
    texts = "return [...document.querySelectorAll('#said > li')].slice(-2).map((item) => item.innerText)"
    shown = browser.execute_script(texts)
    browser.refresh()
    assert browser.execute_script(texts) == shown


def test_what_a_model_writes_runs_in_its_own_direction_and_has_no_styles(browser):
    browser.execute_script(
        "put = document.querySelector('#said').appendChild(document.createElement('div'));"
        "put.className = 'prose'; put.innerHTML = arguments[0]",
        markdown("- مرحبا\n- one\n\n| a |\n|--:|\n| 1 |"),
    )
    style = "return getComputedStyle(put.querySelector(arguments[0]))[arguments[1]]"
    assert browser.execute_script(style, "ul", "direction") == "rtl"
    assert browser.execute_script(style, "td", "textAlign") == "right"


def test_a_phone_does_not_scroll_sideways(browser, site):
    pages = ("/", "/conversations", "/memories", "/tasks", "/documents", "/traces")
    assert sideways(browser, *(site.url + page for page in pages)) == []
