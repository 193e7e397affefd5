import assert from "node:assert/strict";
import test from "node:test";
import { Lines, marked, rowsInView } from "../../../../src/husk/dashboard/static/loglines.js";

const row = (number, stream = "stdout", text = `line ${number}`) => [`2026-01-01T00:00:${String(number % 60).padStart(2, "0")}Z`, stream, text];
const shown = (lines) => Array.from({ length: lines.count }, (_, place) => lines.at(place)[2]);

test("lines are shown in the order in which they came", () => {
  const lines = new Lines();
  lines.add([row(1), row(2)]);
  lines.add([row(3)]);
  assert.deepEqual(shown(lines), ["line 1", "line 2", "line 3"]);
  assert.equal(lines.total, 3);
});

test("search does not see colours nor letter case, and holds for later lines too", () => {
  const lines = new Lines();
  lines.add([row(1, "stdout", "an \x1b[31mERR\x1b[0mOR"), row(2)]);
  lines.filter({ search: "Error" });
  lines.add([row(3, "stdout", "no error"), row(4)]);
  assert.deepEqual(shown(lines), ["an \x1b[31mERR\x1b[0mOR", "no error"]);
  lines.filter({});
  assert.equal(lines.count, 4);
});

test("streams and times are filtered", () => {
  const lines = new Lines();
  lines.add([row(1), row(2, "stderr"), row(3, "stderr")]);
  lines.filter({ stream: "stderr" });
  assert.deepEqual(shown(lines), ["line 2", "line 3"]);
  lines.filter({ since: "2026-01-01T00:00:03Z" });
  assert.deepEqual(shown(lines), ["line 3"]);
});

test("the oldest lines go where there are too many", () => {
  const lines = new Lines(100);
  for (let number = 0; number < 1000; number += 1) lines.add([row(number)]);
  assert.ok(lines.all.length <= 110);
  assert.equal(lines.total, 1000);
  assert.equal(lines.count, lines.all.length);
  assert.equal(shown(lines).at(-1), "line 999");
  lines.filter({ search: "line 998" });
  assert.deepEqual(shown(lines), ["line 998"]);
});

test("only rows in view are made", () => {
  assert.deepEqual(rowsInView(0, 180, 18, 500_000), [0, 30]);
  assert.deepEqual(rowsInView(1_800_000, 180, 18, 500_000), [99_980, 100_030]);
  assert.deepEqual(rowsInView(1e9, 180, 18, 100), [100, 100]);
  assert.deepEqual(rowsInView(0, 180, 18, 0), [0, 0]);
});

test("what was searched for is marked", () => {
  assert.deepEqual(marked("Error: no error", "error"), [["Error", true], [": no ", false], ["error", true]]);
  assert.deepEqual(marked("text", ""), [["text", false]]);
});

test("lines of several logs stand in the order of their times", () => {
  const lines = new Lines();
  const of = (name, ...numbers) => numbers.map((number) => [...row(number), name]);
  lines.add(of("a", 1, 3, 5));
  lines.add(of("b", 2, 4));
  lines.add(of("a", 6));
  assert.deepEqual(shown(lines), [1, 2, 3, 4, 5, 6].map((number) => `line ${number}`));
  lines.filter({ search: "line 4" });
  lines.add(of("b", 0));
  assert.deepEqual(shown(lines), ["line 4"]);
  assert.equal(lines.total, 7);
});

test("a batch that begins a little earlier looks at few of the others again", () => {
  const lines = new Lines(100);
  let looked = 0;
  const of = (time, name) => [String(time).padStart(6, "0"), "stdout", { toLowerCase: () => ((looked += 1), `${time}`), includes: () => false }, name];
  lines.filter({ search: "1" });
  for (let time = 0; time < 1000; time += 10) {
    lines.add([of(time + 5, "a"), of(time + 9, "a")]);
    lines.add([of(time + 1, "b"), of(time + 7, "b")]);
  }
  assert.ok(looked <= 6 * 100, `${looked}`);
  const times = lines.all.map(([time]) => time);
  assert.deepEqual(times, [...times].sort());
  assert.ok(lines.all.length <= 110);
  assert.equal(lines.total, 400);
});

test("lines are filtered by their level", () => {
  const lines = new Lines();
  lines.add([row(1, "stdout", "INFO a"), row(2, "stdout", "WARN b"), row(3, "stdout", "ERROR c"), row(4, "stdout", "d")]);
  lines.filter({ least: "warn" });
  assert.deepEqual(shown(lines), ["WARN b", "ERROR c"]);
});
