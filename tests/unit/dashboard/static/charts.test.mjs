import assert from "node:assert/strict";
import test from "node:test";
import { area, bytes, ceiling, line, percent, placed, span } from "../../../../src/husk/dashboard/static/charts.js";

test("numbers are written as people read them", () => {
  assert.equal(bytes(0), "0 B");
  assert.equal(bytes(999), "999 B");
  assert.equal(bytes(1000), "1.0 kB");
  assert.equal(bytes(123_456_789), "123 MB");
  assert.equal(percent(7.25), "7.3 %");
  assert.equal(percent(250), "250 %");
});

test("an axis ends at a round number", () => {
  assert.deepEqual([0, 1, 1.1, 3, 9, 120, 0.03].map(ceiling), [1, 1, 2, 5, 10, 200, 0.05]);
});

test("points are placed in their box, and nothing leaves it", () => {
  const box = { from: 0, to: 10, top: 100, width: 50, height: 20 };
  assert.deepEqual(placed([[0, 0], [5, 50], [10, 500], [2, null]], box), [[0, 20], [25, 10], [50, 0], [10, null]]);
});

test("a line is lifted over a gap, and an area closed before it", () => {
  const places = [[0, 1], [1, 2], [2, null], [3, 4], [4, 5]];
  assert.equal(line(places), "M0.0 1.0L1.0 2.0M3.0 4.0L4.0 5.0");
  assert.equal(area(places, 9), "M0.0 1.0L1.0 2.0L1.0 9L0.0 9ZM3.0 4.0L4.0 5.0L4.0 9L3.0 9Z");
  assert.equal(line([]), "");
});

test("a chart goes back as far as something is known, and some minutes at least", () => {
  const of = (...times) => [{ points: times.map((time) => [time, 1]) }];
  assert.equal(span(of(), 10_000, 3600), 300);
  assert.equal(span(of(9_990), 10_000, 3600), 300);
  assert.equal(span(of(9_600, 9_990), 10_000, 3600), 600);
  assert.equal(span(of(1), 10_000, 3600), 3600);
});
