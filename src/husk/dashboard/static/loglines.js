// Lines of a log: a store that keeps and filters hundreds of thousands of them, and a list that shows only those in view.
//
//   const log = new Lines();                       pure: no element
//   const view = new LogView(element, log);        `element` scrolls; rows are made for what is in view
//   log.add([["2026-01-31T23:59:59Z", "stdout", "text"], …]); view.changed();
//   startLog(root)                                 all of it, with the controls of a page (see below)

import { pieces, plain, spans } from "./ansi.js";

import { fields, level, LEVELS } from "./loglevels.js";

/** The oldest lines go when there are more. */
export const MOST = 500_000;
// Rows above and below the view, so that scrolling by keys shows no empty place.
const BESIDE = 20;
// Colours of names, which style sheets have.
const COLOURS = 6;
// Lines that go to the clipboard at once.
const MOST_COPIED = 20_000;

export class Lines {
  constructor(most = MOST) {
    this.most = most;
    this.all = [];
    /** How many have been dropped from the beginning: with it, every line has a number for good. */
    this.dropped = 0;
    this.filter({});
  }

  /** Add lines `[time, stream, text]`, or `[time, stream, text, name]` of several logs, which stand in the order of their
   * times; those that pass the filter are shown. */
  add(lines) {
    if (lines.length && this.all.length && lines[0][0] < this.all.at(-1)[0] && lines[0].length > 3) lines = this.#merged(lines);
    const first = this.all.length;
    for (const line of lines) this.all.push(line);
    for (let at = first; at < this.all.length; at += 1) if (this.#passes(this.all[at])) this.shown.push(at + this.dropped);
    const excess = this.all.length - this.most;
    // Not for every line: moving half a million entries takes a while.
    if (excess > this.most / 10) {
      this.all.splice(0, excess);
      this.dropped += excess;
      const from = this.shown.findIndex((number) => number >= this.dropped);
      this.shown.splice(0, from < 0 ? this.shown.length : from);
    }
  }

  /** Take back the lines that are newer than the first of these, and return them all in their order: of several logs
   * that go on nearly each batch begins a little before the last line, and half a million others stay where they are. */
  #merged(lines) {
    let from = this.all.length;
    while (from > 0 && this.all[from - 1][0] > lines[0][0]) from -= 1;
    while (this.shown.length && this.shown.at(-1) - this.dropped >= from) this.shown.pop();
    // What came first of equals stays so.
    return [...this.all.splice(from), ...lines].sort((one, other) => (one[0] < other[0] ? -1 : one[0] > other[0] ? 1 : 0));
  }

  clear() {
    this.all = [];
    this.shown = [];
    this.dropped = 0;
  }

  /** Show only lines with this text (letter case does not count), of this stream, from this time on, of this level or
   * a worse one. */
  filter({ search = "", stream = "", since = "", least = "" }) {
    this.wanted = { search: search.toLowerCase(), stream, since, least };
    this.shown = [];
    for (let at = 0; at < this.all.length; at += 1) if (this.#passes(this.all[at])) this.shown.push(at + this.dropped);
  }

  /** The line that is shown at a place. */
  at(place) {
    return this.all[this.shown[place] - this.dropped];
  }

  get count() {
    return this.shown.length;
  }

  get total() {
    return this.all.length + this.dropped;
  }

  #passes([time, stream, text]) {
    const { search, stream: wanted, since, least } = this.wanted;
    if (wanted && stream !== wanted) return false;
    if (since && time < since) return false;
    if (least && LEVELS.indexOf(level(text)) < LEVELS.indexOf(least)) return false;
    return !search || plain(text).toLowerCase().includes(search);
  }
}

/** Which rows stand in a view: from the first to before the last. */
export function rowsInView(top, height, rowHeight, count) {
  const first = Math.max(0, Math.floor(top / rowHeight) - BESIDE);
  const last = Math.min(count, Math.ceil((top + height) / rowHeight) + BESIDE);
  return [Math.min(first, last), last];
}

/** Parts of a text, marked where they are what was searched for: `[[text, marked], …]`. */
export function marked(text, search) {
  if (!search) return [[text, false]];
  const found = [];
  const lower = text.toLowerCase();
  // Letters whose small form has another length would shift places: then nothing is marked.
  if (lower.length !== text.length) return [[text, false]];
  let from = 0;
  for (let at = lower.indexOf(search); at >= 0; at = lower.indexOf(search, from)) {
    if (at > from) found.push([text.slice(from, at), false]);
    found.push([text.slice(at, at + search.length), true]);
    from = at + search.length;
  }
  if (from < text.length) found.push([text.slice(from), false]);
  return found;
}

/** The address of this log from a moment on. */
function since(location, time) {
  const query = new URLSearchParams(location.search);
  query.set("since", time);
  query.set("tail", "all");
  return `${location.pathname}?${query}`;
}

export class LogView {
  constructor(element, lines) {
    this.element = element;
    this.lines = lines;
    this.follow = true;
    this.times = false;
    this.folds = false;
    /** Names of several logs, in the order in which they came: each has a colour. */
    this.names = [];
    this.space = element.ownerDocument.createElement("div");
    this.space.className = "log-space";
    this.rows = element.ownerDocument.createElement("div");
    this.rows.className = "log-rows";
    this.space.append(this.rows);
    element.replaceChildren(this.space);
    this.rowHeight = this.#measure();
    this.waiting = false;
    this.height = element.clientHeight;
    element.addEventListener("scroll", () => {
      const end = element.scrollHeight - element.clientHeight - element.scrollTop < this.rowHeight;
      // A view of another size moves, too, and that is nobody's wish.
      if (end !== this.follow && element.clientHeight === this.height) {
        this.follow = end;
        element.dispatchEvent(new CustomEvent("follow", { detail: end }));
      }
      this.changed();
    }, { passive: true });
    new ResizeObserver(() => {
      this.#settle();
      this.changed();
    }).observe(element);
  }

  /** There are other lines, or another view: draw once before the next picture. */
  changed() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.draw();
      this.waiting = false;
    });
  }

  draw() {
    const { element, lines, rowHeight } = this;
    this.space.style.height = `${lines.count * rowHeight}px`;
    this.#settle();
    const [first, last] = rowsInView(element.scrollTop, element.clientHeight, rowHeight, lines.count);
    this.rows.style.transform = `translateY(${first * rowHeight}px)`;
    const made = [];
    for (let place = first; place < last; place += 1) made.push(this.#row(lines.at(place)));
    this.rows.replaceChildren(...made);
  }

  /** Be at the end, if that is wanted, of lines and a view as they are now. */
  #settle() {
    if (this.follow) this.element.scrollTop = this.element.scrollHeight;
    this.height = this.element.clientHeight;
  }

  #row([time, stream, text, name]) {
    const document = this.element.ownerDocument;
    const row = document.createElement("div");
    row.className = `log-row log-${stream} log-${level(text) || "plain"}`;
    if (name !== undefined) {
      if (!this.names.includes(name)) this.names.push(name);
      const from = document.createElement("span");
      from.className = `log-name log-name-${this.names.indexOf(name) % COLOURS}`;
      from.textContent = name;
      row.append(from, " ");
    }
    if (this.times) {
      const stamp = document.createElement("time");
      stamp.dateTime = time;
      const link = document.createElement("a");
      link.href = since(document.location, time);
      link.title = "The log from this moment on";
      link.textContent = time.replace("T", " ").slice(0, 23);
      stamp.append(link);
      row.append(stamp, " ");
    }
    const said = this.folds ? fields(text) : undefined;
    if (said) {
      const rest = document.createElement("span");
      rest.className = "log-fields";
      rest.textContent = said.rest;
      row.append(said.message, " ", rest);
      return row;
    }
    for (const part of pieces(text).pieces) {
      for (const [some, found] of marked(part.text, this.lines.wanted.search)) {
        if (!found) row.append(spans(document, [{ ...part, text: some }]));
        else {
          const mark = document.createElement("mark");
          mark.textContent = some;
          row.append(mark);
        }
      }
    }
    return row;
  }

  #measure() {
    const row = this.#row(["", "stdout", "M"]);
    this.rows.append(row);
    const height = row.getBoundingClientRect().height;
    row.remove();
    return height || 18;
  }
}

/**
 * The log of a page. `root` has `data-source`: the address of server-sent events `lines`, each with a list of
 * `[time, stream, text]`, and `end` when there will be no more. Inside it are elements with `data-log`: `view`, and the
 * controls `search`, `stream`, `since`, `level`, `times`, `fields`, `follow`, `copy`, `count`, of which each may be missing.
 */
export function startLog(root) {
  const part = (name) => root.querySelector(`[data-log="${name}"]`);
  const lines = new Lines();
  const view = new LogView(part("view"), lines);
  const count = part("count");
  const tell = () => {
    view.changed();
    if (count) count.textContent = lines.count === lines.total ? `${lines.total} lines` : `${lines.count} of ${lines.total} lines`;
  };
  const refilter = () => {
    const since = part("since")?.value;
    const from = since ? new Date(since).toISOString() : "";
    const value = (name) => part(name)?.value ?? "";
    lines.filter({ search: value("search"), stream: value("stream"), since: from, least: value("level") });
    tell();
  };
  let later = 0;
  part("search")?.addEventListener("input", () => {
    clearTimeout(later);
    later = setTimeout(refilter, 150);
  });
  for (const name of ["stream", "since", "level"]) part(name)?.addEventListener("change", refilter);
  part("times")?.addEventListener("change", (event) => {
    view.times = event.target.checked;
    view.changed();
  });
  part("fields")?.addEventListener("change", (event) => {
    view.folds = event.target.checked;
    view.changed();
  });
  part("copy")?.addEventListener("click", async (event) => {
    const first = Math.max(0, lines.count - MOST_COPIED);
    const text = [];
    for (let place = first; place < lines.count; place += 1) text.push(plain(lines.at(place)[2]));
    const told = await navigator.clipboard.writeText(text.join("\n")).then(() => `${text.length} lines copied`, () => "Not copied");
    event.target.textContent = told;
    setTimeout(() => (event.target.textContent = "Copy"), 2000);
  });
  const follow = part("follow");
  follow?.addEventListener("change", () => {
    view.follow = follow.checked;
    view.changed();
  });
  view.element.addEventListener("follow", (event) => {
    if (follow) follow.checked = event.detail;
  });
  const source = new EventSource(root.dataset.source);
  // A connection that was lost begins again with the whole log.
  source.addEventListener("open", () => {
    lines.clear();
    tell();
  });
  source.addEventListener("lines", (event) => {
    lines.add(JSON.parse(event.data));
    tell();
  });
  source.addEventListener("end", () => source.close());
  return { lines, view, source };
}
