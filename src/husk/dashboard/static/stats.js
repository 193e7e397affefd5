// Numbers and small charts of what containers use. An element with `data-container` (an id) has inside it elements with
// `data-stat`: `cpu`, `memory`, `network`, `disk`, `pids`, whose text is written, and `<svg data-spark="cpu">`, which is
// drawn; `data-points` are those that the server knew. Charts of the last hour: `<svg data-hour="cpu">` in an element with
// `data-history`, the address of their points.

import { bytes, hourChart, percent, sparkline } from "./charts.js";

// Of a small chart: two minutes where one container is measured every two seconds.
const MOST = 60;
const HOUR = 3600;
const shown = new Map();

const rate = (value) => `${bytes(value)}/s`;
// `1.9k`: bytes per second where the column's header says so.
const letter = (value) => bytes(value).replace(/ (.?)B$/, "$1");
const both = (one, other, format) => (one === null ? "" : `${format(one)} / ${format(other)}`);
const TEXTS = {
  cpu: (sample) => (sample.cpu === null ? "" : percent(sample.cpu)),
  memory: (sample) => bytes(sample.memory),
  limit: (sample) => bytes(sample.limit),
  network: (sample) => both(sample.received, sample.sent, rate),
  disk: (sample) => both(sample.read, sample.written, rate),
  pids: (sample) => String(sample.pids),
  // In lists.
  traffic: (sample) => both(sample.received, sample.sent, letter),
  access: (sample) => both(sample.read, sample.written, letter),
};
const VALUES = {
  cpu: (sample) => sample.cpu,
  memory: (sample) => sample.memory,
  network: (sample) => (sample.received === null ? null : sample.received + sample.sent),
  disk: (sample) => (sample.read === null ? null : sample.read + sample.written),
};
// The charts of the last hour: which lines they have, and how values are written.
const HOURS = {
  cpu: { lines: [["processor", "cpu"]], format: percent },
  memory: { lines: [["memory", "memory"]], format: bytes, least: 1000 },
  network: { lines: [["received", "received"], ["sent", "sent"]], format: rate, least: 1000 },
  disk: { lines: [["read", "read"], ["written", "written"]], format: rate, least: 1000 },
  pids: { lines: [["processes", "pids"]], format: (value) => String(Math.round(value)) },
};

function points(id, svg) {
  const key = `${id} ${svg.dataset.spark}`;
  if (!shown.has(key)) shown.set(key, (svg.dataset.points ?? "").split(" ").filter(Boolean).map(Number));
  return shown.get(key);
}

function draw(svg, values) {
  const least = svg.dataset.spark === "cpu" ? 1 : 1000;
  sparkline(svg, values.length > 1 ? values : [0, ...values], { least, label: svg.getAttribute("aria-label") });
}

function show(id, sample) {
  for (const place of document.querySelectorAll(`[data-container="${CSS.escape(id)}"]`)) {
    for (const part of place.querySelectorAll("[data-stat]")) part.textContent = TEXTS[part.dataset.stat](sample);
    for (const svg of place.querySelectorAll("svg[data-spark]")) {
      const values = points(id, svg);
      values.push(VALUES[svg.dataset.spark](sample));
      if (values.length > MOST) values.shift();
      draw(svg, values);
    }
  }
}

function drawAll() {
  for (const place of document.querySelectorAll("[data-container]"))
    for (const svg of place.querySelectorAll("svg[data-spark]")) draw(svg, points(place.dataset.container, svg));
}

async function hours(place) {
  const answer = await fetch(place.dataset.history, { headers: { Accept: "application/json" } });
  if (!answer.ok) return;
  const { series } = await answer.json();
  const drawn = () => {
    const now = Date.now() / 1000;
    for (const svg of place.querySelectorAll("svg[data-hour]")) {
      const { lines, format, least } = HOURS[svg.dataset.hour];
      const found = lines.map(([name, key]) => ({ name, points: series[key] }));
      hourChart(svg, found, { now, seconds: HOUR, least, format, label: svg.getAttribute("aria-label") });
    }
  };
  drawn();
  document.addEventListener("husk:stats", ({ detail }) => {
    const sample = detail[place.dataset.container];
    if (!sample) return;
    for (const [name, kept] of Object.entries(series)) {
      kept.push([sample.time, sample[name]]);
      if (kept.length > HOUR) kept.shift();
    }
    drawn();
  });
}

document.addEventListener("husk:stats", ({ detail }) => {
  for (const [id, sample] of Object.entries(detail)) show(id, sample);
});
document.addEventListener("husk:refreshed", drawAll);
drawAll();
for (const place of document.querySelectorAll("[data-history]")) hours(place);
