import assert from "node:assert/strict";
import test from "node:test";
import { resumed } from "../../../../src/husk/dashboard/static/resume.js";

const OWN = `/~${"a".repeat(43)}`;
const OLD = `/~${"b".repeat(43)}`;
const at = (pathname, search = "", hash = "") => ({ pathname, search, hash });

test("the same page of the session that is kept", () => {
  assert.equal(resumed(at("/containers", "?show=running", "#x"), OWN), `${OWN}/containers?show=running#x`);
  assert.equal(resumed(at(`${OLD}/events`), OWN), `${OWN}/events`);
  assert.equal(resumed(at(OLD), OWN), `${OWN}/`);
  assert.equal(resumed(at("/"), OWN), `${OWN}/`);
  assert.equal(resumed(at("/sign-in"), OWN), `${OWN}/`);
  assert.equal(resumed(at("//evil.example/"), OWN), `${OWN}//evil.example/`);
});

test("a session that has ended leads nowhere, nor does what is none", () => {
  assert.equal(resumed(at(`${OWN}/containers`), OWN), null);
  for (const kept of ["", "/", "//evil.example", `${OWN}/x`, "https://evil.example/"]) assert.equal(resumed(at("/"), kept), null);
});
