import assert from "node:assert/strict";
import test from "node:test";
import { PLAIN, colour, pieces, plain, styled } from "../../../../src/husk/dashboard/static/ansi.js";

const shown = (line) => pieces(line).pieces.map(({ text, fg, bg, flags }) => [text, fg, bg, flags.join(" ")]);

test("a line without sequences is one plain piece", () => {
  assert.deepEqual(shown("hello"), [["hello", "", "", ""]]);
  assert.deepEqual(shown(""), []);
});

test("colours and flags begin and end", () => {
  assert.deepEqual(shown("a\x1b[1;31mb\x1b[22mc\x1b[0md"), [
    ["a", "", "", ""],
    ["b", "c1", "", "bold"],
    ["c", "c1", "", ""],
    ["d", "", "", ""],
  ]);
  assert.deepEqual(shown("\x1b[97;44mx\x1b[39;49my"), [["x", "c15", "c4", ""], ["y", "", "", ""]]);
});

test("the 256 colours and true colours are known", () => {
  assert.equal(colour(9), "c9");
  assert.equal(colour(16), "#000000");
  assert.equal(colour(231), "#ffffff");
  assert.equal(colour(232), "#080808");
  assert.deepEqual(shown("\x1b[38;5;196mx\x1b[48;2;1;2;3my"), [["x", "#ff0000", "", ""], ["y", "#ff0000", "#010203", ""]]);
  assert.equal(styled(PLAIN, "38;5").fg, "c0");
});

test("the style goes on in the next line", () => {
  const first = pieces("\x1b[32mgreen");
  assert.equal(pieces("still", first.style).pieces[0].fg, "c2");
});

test("other sequences and control characters leave nothing behind", () => {
  assert.equal(plain("\x1b[2K\x1b[1Gdone\x1b]0;title\x07!\x1b(B\x08"), "done!");
  assert.equal(plain("a\x1b"), "a");
});

test("of a line that was overwritten the last state is shown", () => {
  assert.equal(plain("10 %\r50 %\r100 %"), "100 %");
  assert.equal(plain("text\r"), "text");
});
