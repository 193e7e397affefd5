import assert from "node:assert/strict";
import test from "node:test";
import { fields, level } from "../../../../src/husk/dashboard/static/loglevels.js";

test("levels are read in the words of programs", () => {
  for (const [text, expected] of [
    ["2026-01-01 ERROR cannot connect", "error"],
    ["[warn] disk is nearly full", "warn"],
    ["level=info msg=started", "info"],
    ["DBG 12 things", "debug"],
    ["panic: runtime error", "error"],
    ["Traceback (most recent call last):", "error"],
    ["all is well", ""],
    ["terror and information", ""],
    [`${"x ".repeat(200)}error`, ""],
    ['{"level":"warning","msg":"no error here"}', "warn"],
    ['{"level":30,"msg":"pino"}', "info"],
    ['{"level":60}', "error"],
    ['{"msg":"error"}', ""],
    ['{"level":null}', ""],
    ["{broken error", "error"],
    ["null", ""],
    ['{"level":{"toString":1,"valueOf":1}}', ""],
    ['{"level":["error"]}', ""],
    ['{"level":"constructor"}', ""],
    ['{"level":"__proto__"}', ""],
  ]) assert.equal(level(text), expected, text);
});

test("a line of JSON is its message and the rest", () => {
  assert.deepEqual(fields('{"level":"info","msg":"started","port":80,"tags":["a"]}'), {
    message: "started",
    rest: 'level=info  port=80  tags=["a"]',
  });
  assert.deepEqual(fields('{"a":1}'), { message: "", rest: "a=1" });
  assert.equal(fields("plain"), undefined);
  assert.equal(fields("{broken"), undefined);
  assert.equal(fields(`{"a":"${"x".repeat(1 << 17)}"}`), undefined);
});

test("a line that is deeper than can be written is shown all the same", () => {
  const deep = `{"msg":"here","a":${"[".repeat(32_000)}${"]".repeat(32_000)}}`;
  assert.ok(deep.length < 1 << 16);
  assert.equal(fields(deep).message, "here");
});
