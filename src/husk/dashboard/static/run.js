// What the form says, beside it as commands, while somebody writes. Without this script a button shows it.

import { csrf } from "./live.js";

const form = document.getElementById("run");
const preview = document.getElementById("preview");
const PAUSE = 250;
let timer;
let asked = 0;

async function show() {
  const turn = ++asked;
  const answer = await fetch(form.dataset.preview, {
    method: "POST",
    headers: { "X-CSRF-Token": csrf(), "X-Region": "preview" },
    body: new URLSearchParams(new FormData(form)),
  }).catch(() => undefined);
  // Something else has been written meanwhile.
  if (answer?.ok && turn === asked) preview.innerHTML = await answer.text();
}

form.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(show, PAUSE);
});
