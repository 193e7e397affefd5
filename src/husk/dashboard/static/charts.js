// Charts as SVG: small ones beside a number, and one of the last hour with its axes. The paths are pure functions.

const SVG = "http://www.w3.org/2000/svg";
const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];

/** Bytes as people read them. */
export function bytes(value) {
  let unit = 0;
  let left = Math.max(0, value);
  while (left >= 999.5 && unit < UNITS.length - 1) {
    left /= 1000;
    unit += 1;
  }
  return `${unit === 0 || left >= 99.5 ? Math.round(left) : left.toFixed(1)} ${UNITS[unit]}`;
}

export function percent(value) {
  return `${value >= 99.5 ? Math.round(value) : value.toFixed(1)} %`;
}

/** The next round number that is not smaller: 1, 2 or 5 times a power of ten. */
export function ceiling(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value * (1 - 1e-9));
}

/** `[[x, y], …]` of points `[[time, value], …]` in a box, with time from left to right and `null` values as gaps. */
export function placed(points, { from, to, top, width, height }) {
  const span = Math.max(1e-9, to - from);
  return points.map(([time, value]) => [
    ((time - from) / span) * width,
    value === null ? null : height - (Math.min(Math.max(value, 0), top) / top) * height,
  ]);
}

/** The path of a line through places; it is lifted over gaps. */
export function line(places) {
  let path = "";
  let drawing = false;
  for (const [x, y] of places) {
    if (y === null) {
      drawing = false;
      continue;
    }
    path += `${drawing ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
    drawing = true;
  }
  return path;
}

/** The path of what is below the line. */
export function area(places, height) {
  let path = "";
  let run = [];
  const close = () => {
    if (run.length > 1) path += `${line(run)}L${run.at(-1)[0].toFixed(1)} ${height}L${run[0][0].toFixed(1)} ${height}Z`;
    run = [];
  };
  for (const place of places) {
    if (place[1] === null) close();
    else run.push(place);
  }
  close();
  return path;
}

function element(document, name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** A small chart in an `<svg class="spark">`: values at equal distances, the newest at the right. */
export function sparkline(svg, values, { top = 0, least = 0, label = "" } = {}) {
  const [width, height] = [100, 24];
  const highest = top || ceiling(Math.max(...values.filter((value) => value !== null), least));
  const last = Math.max(1, values.length - 1);
  const points = values.map((value, index) => [index, value]);
  const places = placed(points, { from: 0, to: last, top: highest, width, height });
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", label || svg.getAttribute("aria-label") || "chart");
  svg.replaceChildren(
    element(svg.ownerDocument, "path", { class: "area", d: area(places, height) }),
    element(svg.ownerDocument, "path", { class: "line", d: line(places) }),
  );
}

/**
 * A chart of the last hour (or of `seconds`) with lines for each of `series`: `{name, points: [[time, value], …]}`, times
 * in seconds. `format` writes a value at the axis.
 */
export function hourChart(svg, series, { now, seconds: longest = 3600, top = 0, least = 1, format = bytes, label = "" } = {}) {
  const document = svg.ownerDocument;
  const seconds = span(series, now, longest);
  const [width, height, left, bottom] = [600, 160, 64, 20];
  const from = now - seconds;
  const values = series.flatMap(({ points }) => points.filter(([time]) => time >= from).map(([, value]) => value ?? 0));
  const highest = top || ceiling(Math.max(least, ...chunkMax(values)));
  const box = { from, to: now, top: highest, width: width - left, height: height - bottom };
  const parts = [];
  for (let step = 0; step <= 4; step += 1) {
    const y = (box.height * step) / 4;
    parts.push(element(document, "line", { class: "grid", x1: left, x2: width, y1: y, y2: y }));
    const text = element(document, "text", { class: "axis", x: left - 6, y: Math.min(Math.max(y + 4, 10), height), "text-anchor": "end" });
    text.textContent = format(highest * (1 - step / 4));
    if (step % 2 === 0) parts.push(text);
  }
  for (const [share, anchor] of [[0, "start"], [0.5, "middle"], [1, "end"]]) {
    const text = element(document, "text", { class: "axis", x: left + box.width * share, y: height - 4, "text-anchor": anchor });
    text.textContent = share === 1 ? "now" : `−${Number(((seconds * (1 - share)) / 60).toFixed(1))} min`;
    parts.push(text);
  }
  series.forEach(({ name, points }, index) => {
    const places = placed(points.filter(([time]) => time >= from), box).map(([x, y]) => [x + left, y]);
    const group = element(document, "g", { class: `series series-${index + 1}` });
    const title = element(document, "title", {});
    title.textContent = name;
    if (series.length === 1) group.append(element(document, "path", { class: "area", d: area(places, box.height) }));
    group.append(title, element(document, "path", { class: "line", d: line(places) }));
    parts.push(group);
  });
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", label || `chart of ${series.map(({ name }) => name).join(", ")}`);
  svg.replaceChildren(...parts);
}

/** How far back a chart goes: where less is known than all of it, as far as that, and at least some minutes. */
export function span(series, now, longest) {
  const first = series.reduce((oldest, { points }) => Math.min(oldest, points[0]?.[0] ?? now), now);
  const known = Math.ceil((now - first) / 300) * 300;
  return Math.min(longest, Math.max(300, known));
}

/** The largest of many values: Math.max takes only so many arguments. */
function chunkMax(values) {
  return values.length ? [values.reduce((most, value) => (value > most ? value : most), -Infinity)] : [];
}
