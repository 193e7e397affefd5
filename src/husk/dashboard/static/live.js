// Keeps an open page up to date. An element with `data-live="container image"` and an id is a region: when something
// happens to a container or an image, the block of that name is fetched again from the same address, and put in.
// Forms with `data-act` are sent without leaving the page. Without this script every page works by loading it again.
//
// Other scripts hear what comes: `document.addEventListener("husk:change", event => event.detail.type …)`, likewise
// `husk:stats` on pages that ask for stats by `<body>`'s or any element's `data-stats`.

import { morph } from "./morph.js";

const PAUSE = 300;
// Regions that are to be fetched, or are being fetched; true where something has happened since that began.
const waiting = new Map();
let source;
// A form is on its way to another page, which says more than this one would.
let leaving = false;

const told = (name) => document.querySelector(`meta[name="husk-${name}"]`).content;
// What stands before the path of every page of this session.
const root = told("root");

export function csrf() {
  return told("csrf");
}

// For resume.js. Nothing else of this host reads it: storage, other than cookies, is kept apart by port.
try {
  localStorage.setItem("husk-root", root);
} catch {
  // Storage is off in this browser.
}

// Milliseconds for which good news stay; bad ones stay until somebody has closed them.
const STAYS = 6000;

function toast(text, kind) {
  const line = document.createElement("p");
  line.className = `notice ${kind}`;
  line.textContent = text;
  document.getElementById("notices").append(line);
  return line;
}

function closable(line) {
  const close = document.createElement("button");
  close.type = "button";
  close.className = "plain";
  close.textContent = "Close";
  close.addEventListener("click", () => line.remove());
  line.append(" ", close);
}

export function announce(text, bad = false) {
  const line = toast(text, bad ? "bad" : "");
  if (bad) closable(line);
  else setTimeout(() => line.remove(), STAYS);
}

// What is under way is told with a spinner, until `done` is called.
function underWay(text) {
  const line = toast(`${text}…`, "pending");
  return () => line.remove();
}

// Sends a form of ours; `word` tells what is under way, and what the server says of it is announced.
export async function post(action, fields, word = "Under way") {
  const done = underWay(word);
  try {
    const answer = await fetch(action, {
      method: "POST",
      headers: { Accept: "application/json", "X-CSRF-Token": csrf() },
      body: new URLSearchParams(fields),
    });
    const { message: said = "", bad = false } = await answer.json().catch(() => ({}));
    if (said || !answer.ok) announce(said || `The server answered ${answer.status}.`, !answer.ok || bad);
    return answer.ok;
  } finally {
    done();
  }
}

export async function refresh(region) {
  const answer = await fetch(location.href, { headers: { "X-Region": region.id } });
  if (answer.status === 401) return startOver();
  if (answer.ok) {
    morph(region, await answer.text());
    region.dispatchEvent(new CustomEvent("husk:refreshed", { bubbles: true }));
  }
}

function soon(region) {
  if (waiting.has(region)) {
    waiting.set(region, true);
    return;
  }
  waiting.set(region, false);
  setTimeout(async () => {
    waiting.set(region, false);
    try {
      await refresh(region);
    } catch {
      // The server is away: the stream of events tells when it is back.
    } finally {
      const again = waiting.get(region);
      waiting.delete(region);
      if (again) soon(region);
    }
  }, PAUSE);
}

function refreshFor(type) {
  for (const region of document.querySelectorAll("[data-live]"))
    if (!type || region.dataset.live.split(" ").includes(type)) soon(region);
}

// What the engine tells no event of is looked at again and again: `data-every` says after how many seconds.
function watch(region) {
  setInterval(() => {
    if (!document.hidden && !waiting.has(region)) soon(region);
  }, 1000 * region.dataset.every);
}

// Whoever has no session any more is told so by the page itself.
function startOver() {
  if (!leaving) location.reload();
}

function away(is) {
  document.getElementById("away").hidden = !is;
}

function listen() {
  if (source || document.hidden) return;
  const stats = document.querySelector("[data-stats]")?.dataset.stats;
  source = new EventSource(stats ? `${root}/live?stats=${encodeURIComponent(stats)}` : `${root}/live`);
  // What happened between the making of the page, or the loss of a connection, and now.
  source.addEventListener("open", () => refreshFor());
  source.addEventListener("change", (event) => {
    const detail = JSON.parse(event.data);
    refreshFor(detail.type);
    document.dispatchEvent(new CustomEvent("husk:change", { detail }));
  });
  source.addEventListener("stats", (event) => {
    document.dispatchEvent(new CustomEvent("husk:stats", { detail: JSON.parse(event.data) }));
  });
  source.addEventListener("away", () => away(true));
  source.addEventListener("back", () => {
    away(false);
    refreshFor();
  });
  source.addEventListener("error", () => {
    if (source?.readyState === EventSource.CLOSED) startOver();
  });
}

// A browser opens few connections to one server: tabs that nobody sees leave theirs to others.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    source?.close();
    source = undefined;
  } else {
    listen();
    refreshFor();
  }
});

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.matches("form[data-act]") || event.submitter?.hasAttribute("data-leaves")) {
    leaving = !event.defaultPrevented;
    return;
  }
  event.preventDefault();
  const button = event.submitter;
  const fields = new FormData(form, button);
  if (button) button.disabled = true;
  try {
    const word = button?.getAttribute("aria-label") || button?.textContent;
    await post(button?.hasAttribute("formaction") ? button.formAction : form.action, fields, word);
  } catch {
    announce("The server does not answer.", true);
  } finally {
    if (button) button.disabled = false;
  }
});

// Whoever leaves the page for good does not want the end of its stream taken for a fault.
addEventListener("pagehide", () => {
  source?.close();
  source = undefined;
});
addEventListener("pageshow", () => {
  leaving = false;
  listen();
});
for (const region of document.querySelectorAll("[data-every]")) watch(region);
listen();
