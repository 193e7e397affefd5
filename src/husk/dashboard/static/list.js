// The list of containers: groups that fold, and stay folded; and a menu of what else can be done to a container.
// Without this script all groups are open, and "More" leads to the container's page, which has all of it.

import { csrf, post, announce } from "./live.js";

const FOLDED = "husk-folded";
const menu = document.getElementById("more");

function folded() {
  try {
    return new Set(JSON.parse(localStorage.getItem(FOLDED) ?? "[]"));
  } catch {
    return new Set();
  }
}

function fold(group, is) {
  group.toggleAttribute("data-folded", is);
  group.querySelector("[data-fold]")?.setAttribute("aria-expanded", String(!is));
}

function foldAll() {
  const kept = folded();
  for (const group of document.querySelectorAll("tbody[data-group]")) fold(group, kept.has(group.id));
}

function toggle(group) {
  const kept = folded();
  const is = !group.hasAttribute("data-folded");
  if (is) kept.add(group.id);
  else kept.delete(group.id);
  fold(group, is);
  try {
    localStorage.setItem(FOLDED, JSON.stringify([...kept].slice(-200)));
  } catch {
    // Storage is off in this browser: it is folded until the page is left.
  }
}

// What a container in a state can be asked for, besides what its row shows: [word, path, what kind of thing it is].
const PAGES = [["Stats", "/stats", "page"], ["Files", "/files", "page"], ["Inspect", "/inspect", "page"]];
const REMOVE = ["Remove…", "/remove", "danger"];
const MENUS = {
  running: [["Stop", "/stop", "act"], ["Pause", "/pause", "act"], ...PAGES, ["Kill…", "/kill", "danger"], REMOVE],
  restarting: [["Stop", "/stop", "act"], ...PAGES, ["Kill…", "/kill", "danger"], REMOVE],
  paused: [["Unpause", "/unpause", "act"], ["Stop", "/stop", "act"], ...PAGES, REMOVE],
};
const ENDED = [["Files", "/files", "page"], ["Inspect", "/inspect", "page"], REMOVE];

function item(place, name, [word, path, kind]) {
  const made = document.createElement(kind === "act" ? "button" : "a");
  made.setAttribute("role", "menuitem");
  made.textContent = word;
  if (kind === "danger") made.className = "danger";
  if (kind !== "act") {
    made.href = place + path;
    return made;
  }
  made.type = "button";
  made.addEventListener("click", async () => {
    menu.hidePopover();
    await post(place + path, { csrf: csrf() }, `${word} ${name}`).catch(() => announce("The server does not answer.", true));
  });
  return made;
}

function open(link) {
  const state = link.closest("tr").dataset.state;
  const place = new URL(link.href).pathname;
  const name = decodeURIComponent(place.slice(place.lastIndexOf("/") + 1));
  menu.replaceChildren(...(MENUS[state] ?? ENDED).map((each) => item(place, name, each)));
  menu.showPopover();
  const box = link.getBoundingClientRect();
  const top = Math.min(box.bottom + 2, innerHeight - menu.offsetHeight - 4);
  menu.style.top = `${Math.max(4, top)}px`;
  menu.style.left = `${Math.max(4, box.right - menu.offsetWidth)}px`;
  menu.firstElementChild.focus();
  menu.opener = link;
}

menu?.addEventListener("keydown", (event) => {
  const items = [...menu.children];
  const place = items.indexOf(document.activeElement);
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  items[(place + step + items.length) % items.length].focus();
});
menu?.addEventListener("toggle", (event) => {
  if (event.newState === "closed" && document.activeElement === document.body) menu.opener?.focus();
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-fold]");
  if (button) return toggle(button.closest("tbody"));
  const link = event.target.closest("a[data-more]");
  if (!link || !menu?.showPopover || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  open(link);
});
document.addEventListener("husk:refreshed", foldAll);
foldAll();
