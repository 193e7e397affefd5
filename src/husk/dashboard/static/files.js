// Uploads: each file that is chosen, or dropped on the page, is the body of one request.
import { announce, csrf, refresh } from "./live.js";

const input = document.getElementById("upload");

async function send(file) {
  const query = new URLSearchParams({ path: input.dataset.path, file: file.name });
  const answer = await fetch(`${input.dataset.upload}?${query}`, {
    method: "POST",
    headers: { Accept: "application/json", "X-CSRF-Token": csrf(), "Content-Type": "application/octet-stream" },
    body: file,
  });
  const said = (await answer.json().catch(() => ({}))).message ?? `The server answered ${answer.status}.`;
  announce(said, !answer.ok);
  return answer.ok;
}

async function sendAll(files) {
  for (const file of files) {
    announce(`${file.name} is sent…`);
    try {
      if (!(await send(file))) return;
    } catch {
      announce(`${file.name} was not sent: the server does not answer.`, true);
      return;
    }
  }
  await refresh(document.getElementById("entries"));
}

input.addEventListener("change", async () => {
  await sendAll([...input.files]);
  input.value = "";
});
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", (event) => {
  event.preventDefault();
  sendAll([...event.dataTransfer.files]);
});
