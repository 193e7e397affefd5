// The search in the bar: `/` or Ctrl-K goes to it, what is found stands below it while one writes, arrows choose and
// Enter opens. Without this script the form shows a page with what is found.

const field = document.getElementById("search");
const hits = document.getElementById("hits");
const PAUSE = 120;
let timer;
let asked = 0;

const links = () => [...hits.querySelectorAll("a")];
const chosen = () => hits.querySelector("a.chosen");

function close() {
  hits.hidden = true;
}

function choose(link) {
  chosen()?.classList.remove("chosen");
  if (!link) return;
  link.classList.add("chosen");
  link.scrollIntoView({ block: "nearest" });
}

async function find() {
  const text = field.value.trim();
  const turn = ++asked;
  if (!text) return close();
  const address = new URL(field.form.action);
  address.search = new URLSearchParams({ q: text });
  const answer = await fetch(address, { headers: { "X-Region": "found" } }).catch(() => undefined);
  // A later word has been asked for meanwhile.
  if (!answer?.ok || turn !== asked) return;
  hits.innerHTML = await answer.text();
  hits.hidden = false;
  choose(links()[0]);
}

field.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(find, PAUSE);
});

field.addEventListener("keydown", (event) => {
  const all = links();
  const place = all.indexOf(chosen());
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    choose(all[(place + (event.key === "ArrowDown" ? 1 : -1) + all.length) % all.length]);
  } else if (event.key === "Enter" && !hits.hidden && chosen()) {
    event.preventDefault();
    chosen().click();
  } else if (event.key === "Escape") {
    close();
    field.blur();
  }
});

// A link to a place on the page that is open leads nowhere else: the list closes.
hits.addEventListener("click", close);
document.addEventListener("click", (event) => {
  if (!field.form.contains(event.target)) close();
});

document.addEventListener("keydown", (event) => {
  const writes = event.target.closest?.("input, textarea, select, [contenteditable], .xterm, [role=application]");
  const slash = event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey && !writes;
  const k = event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.target.closest?.(".xterm");
  if (!slash && !k) return;
  event.preventDefault();
  field.focus();
  field.select();
});
