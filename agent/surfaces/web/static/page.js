"use strict";
// Everything works without this file; it adds keys, the pane without a new page, and the list that goes on.

const root = document.documentElement;
const kept = { get theme() { try { return localStorage.getItem("theme"); } catch { return null; } } };
if (kept.theme === "dark" || kept.theme === "light") root.dataset.theme = kept.theme;

// Times in the browser's zone, where the server does not know the person's; see templates.py.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const forms = { hour: "H:M", moment: "d b H:M:S", minute: "d b H:M", day: "d b Y", due: "a d b Y H:M", clock: "A d B Y, H:M:S Z" };
function written(time, form) {
  const two = (number) => String(number).padStart(2, "0"), word = (options) => time.toLocaleString("en-US", options);
  const parts = {
    d: () => two(time.getDate()), H: () => two(time.getHours()), M: () => two(time.getMinutes()),
    S: () => two(time.getSeconds()), Y: () => time.getFullYear(),
    a: () => word({ weekday: "short" }), A: () => word({ weekday: "long" }),
    b: () => word({ month: "short" }), B: () => word({ month: "long" }),
    Z: () => new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" }).formatToParts(time).find((part) => part.type === "timeZoneName").value,
  };
  return forms[form].replace(/[a-zA-Z]/g, (letter) => parts[letter]());
}
function tellZone(within) {
  for (const shown of within.querySelectorAll("time[data-form]")) {
    const time = new Date(shown.dateTime);
    shown.textContent = written(time, shown.dataset.form);
    shown.title = written(time, "clock");
    delete shown.dataset.form;
  }
  for (const field of within.querySelectorAll("input[name=zone]")) field.value = zone;
}

document.addEventListener("DOMContentLoaded", () => {
  tellZone(document);
  new MutationObserver(() => tellZone(document)).observe(document.body, { childList: true, subtree: true });
  const one = (selector) => document.querySelector(selector);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const told = one("#told");
  let hush;
  function tell(text) {
    told.textContent = text;
    told.classList.add("on");
    clearTimeout(hush);
    hush = setTimeout(() => told.classList.remove("on"), 2500);
  }

  // Light and dark.
  const theme = one("#theme");
  const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const name = () => { theme.textContent = dark() ? "Light" : "Dark"; };
  theme.hidden = false;
  name();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", name);
  theme.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("theme", root.dataset.theme); } catch { /* not kept, then */ }
    name();
  });

  const help = one("#help");
  one("#ask-help").hidden = false;
  one("#ask-help").addEventListener("click", () => help.showModal());

  // A trace: the pane of the chosen span.
  const pane = one("#pane");
  let asked = 0;
  async function choose(link, focus = true) {
    const mine = ++asked;
    for (const other of all("a[data-span]")) {
      const here = other === link;
      other.closest("tr").classList.toggle("chosen", here);
      if (here) other.setAttribute("aria-current", "true"); else other.removeAttribute("aria-current");
    }
    if (focus) link.focus({ preventScroll: true });
    link.closest("tr").scrollIntoView({ block: "nearest" });
    const query = "?" + new URLSearchParams({ span: link.dataset.span });
    history.replaceState(null, "", query);
    const answer = await fetch(pane.dataset.from + "/pane" + query).catch(() => null);
    if (mine !== asked) return;
    if (!answer || !answer.ok) { tell("The server does not answer"); return; }
    const text = await answer.text();
    if (mine !== asked) return;
    pane.innerHTML = text;  // rendered and escaped by the server
    pane.scrollTop = 0;
    pane.dataset.shown = link.dataset.span;
  }
  if (pane) {
    pane.dataset.shown = one("[aria-current]")?.dataset.span || "";
    document.addEventListener("click", (event) => {
      const link = event.target.closest("a[data-span]");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
      if (matchMedia("(max-width: 900px)").matches) return;  // there the link jumps to the pane
      event.preventDefault();
      choose(link);
    });
  }

  const copy = one("#copy");
  copy?.addEventListener("click", async (event) => {
    if (!navigator.clipboard) return;  // the link shows it instead
    event.preventDefault();
    try {
      const answer = await fetch(copy.href);
      if (!answer.ok) throw new Error(answer.status);
      await navigator.clipboard.writeText(await answer.text());
      tell("Copied as Markdown");
    } catch { location.href = copy.href; }
  });

  // The list that goes on.
  const live = one("#live");
  let source;
  function follow(on) {
    source?.close();
    source = null;
    live.setAttribute("aria-pressed", String(on));
    if (!on) return;
    source = new EventSource(live.dataset.from);
    source.addEventListener("ready", () => tell("Live"));
    source.addEventListener("trace", (event) => {
      const holder = document.createElement("template");
      holder.innerHTML = event.data;  // rendered and escaped by the server
      const row = holder.content.querySelector("tr");
      const old = document.getElementById(row.id);
      const focused = old?.contains(document.activeElement);
      if (old) {
        row.querySelector(".pick input").checked = old.querySelector(".pick input").checked;
        old.replaceWith(row);
      } else one("#traces tbody").prepend(row);
      if (focused) row.querySelector(".open").focus();
      one("#empty")?.remove();
      for (const late of all("#traces tbody tr").slice(200)) late.remove();
      one(".shown").textContent = `${all("#traces tbody tr").length} shown`;
    });
    source.onerror = () => { if (source?.readyState === EventSource.CLOSED) { follow(false); tell("The server does not answer"); } };
  }
  if (live) {
    live.hidden = false;
    live.addEventListener("click", () => follow(!source));
  }
  one("#compare")?.addEventListener("submit", (event) => {
    if (all(".pick input:checked").length !== 2) { event.preventDefault(); tell("Choose two traces to compare"); }
  });

  // Talking: the answer appears as it is written, then both messages as the server shows them.
  const talk = one("#talk"), text = one("#text"), said = one("#said");
  function put(html) {  // rendered and escaped by the server
    const holder = document.createElement("template");
    holder.innerHTML = html;
    tellZone(holder.content);
    for (const item of [...holder.content.children]) {
      const old = item.id && document.getElementById(item.id);
      if (!old) said.append(item); else if (!old.isEqualNode(item)) old.replaceWith(item);
    }
  }
  const atTheEnd = () => innerHeight + scrollY > root.scrollHeight - 120;
  const toTheEnd = () => scrollTo(0, root.scrollHeight);
  async function read(body, each) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      lines.forEach((line) => each(JSON.parse(line)));
    }
  }
  async function ask(words) {
    const response = await fetch("/talk", { method: "POST", body: new URLSearchParams({ text: words, zone, stream: "yes" }) });
    if (response.status === 401 || response.status === 403) throw new Error("This page is not open to you any more; load it again.");
    if (!response.ok) throw new Error(`The server refused it (${response.status}).`);
    return response.body;
  }
  talk?.addEventListener("submit", async (event) => {
    event.preventDefault();
    const words = text.value.trim();
    if (!words || talk.dataset.busy) return;
    talk.dataset.busy = "yes";
    text.value = "";
    one("#empty")?.remove();
    put(`<li class="user"><div class="by"><b></b></div><p class="typed" dir="auto"></p></li>
      <li class="assistant"><div class="by"><b>hachi</b></div><div class="prose waiting" role="status">…</div></li>`);
    const answer = said.lastElementChild, mine = answer.previousElementSibling, body = answer.querySelector(".prose");
    mine.querySelector("b").textContent = talk.dataset.person;
    mine.querySelector(".typed").textContent = words;
    toTheEnd();
    let whole = false;
    try {
      await read(await ask(words), (line) => {
        const follow = atTheEnd();
        if (line.html !== undefined) { body.className = "prose"; body.innerHTML = line.html; }
        if (line.wrong !== undefined) { body.className = "wrong"; body.textContent = line.wrong; }
        if (line.html === undefined && !whole) {  // the answer is there; what was learned from it comes later
          whole = true;
          delete talk.dataset.busy;
          if (line.turn !== undefined) { mine.remove(); answer.remove(); }
        }
        if (line.turn !== undefined) put(line.turn);
        if (follow) toTheEnd();
      });
      if (!whole) throw new TypeError();
    } catch (error) {
      if (whole) return;  // only what comes after the answer is missing
      const why = error.name === "Error" ? error.message : "The server does not answer.";
      body.insertAdjacentHTML("afterend", '<p class="wrong" role="alert"></p>');
      body.nextElementSibling.textContent = `${why} What you wrote stands below.`;
      if (body.textContent === "…") body.remove();
      text.value = [words, text.value].filter(Boolean).join("\n");
      delete talk.dataset.busy;
      toTheEnd();
    }
  });
  text?.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); talk.requestSubmit(); }
  });
  if (said && !("still" in said.dataset)) toTheEnd();
  document.addEventListener("submit", (event) => {
    const question = event.target.dataset.confirm;
    if (question && !confirm(question)) event.preventDefault();
  });

  // Keys.
  const items = () => all(pane ? "a[data-span]" : "a.open, .differences h2 a");
  const typing = (target) => target.matches("input:not([type=checkbox]), textarea, select");
  function move(by) {
    const list = items();
    if (!list.length) return;
    const here = pane ? list.findIndex((link) => link.hasAttribute("aria-current")) : list.indexOf(document.activeElement);
    const next = list[Math.max(0, Math.min(list.length - 1, here + by))];
    if (pane) choose(next); else { next.focus(); next.scrollIntoView({ block: "nearest" }); }
  }
  const does = {
    j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1),
    "/": () => { const field = one("#search") || text; field?.focus(); field?.select(); },
    "?": () => help.showModal(),
    x: () => document.activeElement.closest("tr")?.querySelector(".pick input")?.click(),
    c: () => one("#compare")?.requestSubmit(),
    l: () => live?.click(),
    y: () => copy?.click(),
    e: () => {
      const list = items(), here = list.findIndex((link) => link.hasAttribute("aria-current"));
      const bad = [...list.slice(here + 1), ...list.slice(0, here + 1)].find((link) => link.closest("tr.bad"));
      if (pane && bad) choose(bad); else tell("Nothing went wrong here");
    },
    Enter: (event) => {
      if (!pane || !event.target.matches("a[data-span]")) return false;
      pane.focus();
    },
    Escape: (event) => {
      if (typing(event.target)) event.target.blur();
      else if (pane?.contains(document.activeElement)) one("[aria-current]").focus();
      else if (one("#back")) location.href = one("#back").href;
      else return false;
    },
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || help.open) return;
    if (typing(event.target) && event.key !== "Escape") return;
    const arrow = event.key.startsWith("Arrow");
    if (arrow && (pane?.contains(event.target) || event.target.matches("summary"))) return;  // there they scroll
    if (Object.hasOwn(does, event.key) && does[event.key](event) !== false) event.preventDefault();
  });
});
